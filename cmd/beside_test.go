package cmd

import (
	"testing"

	"github.com/talkops-ai/talkops/runtime/tool"
)

type namedTool struct {
	tool.Tool
	name string
}

func (n namedTool) Name() string { return n.name }

// Two servers cannot offer tools of one name: the model would call one and mean the
// other.
func TestServersWhoseToolsAreCalledTheSame(t *testing.T) {
	b := &beside{}
	if n, other := b.add([]tool.Tool{namedTool{name: "mcp_a_b_c"}, namedTool{name: "mcp_a_b_d"}}); n != 2 || other != "" {
		t.Errorf("the first server: %d, %q", n, other)
	}
	if n, other := b.add([]tool.Tool{namedTool{name: "mcp_a_b_c"}, namedTool{name: "mcp_a_e"}}); n != 1 || other != "mcp_a_b_c" {
		t.Errorf("the second server: %d, %q", n, other)
	}
	if len(b.tools) != 3 {
		t.Errorf("%d tools", len(b.tools))
	}
}
