package model

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/anthropic"
)

// call turns a Request into the library's own.
func (m *vendorModel) call(req Request) (fantasy.Call, error) {
	prompt, err := toPrompt(req)
	if err != nil {
		return fantasy.Call{}, err
	}
	if w := m.conf.wire(); w == wireAnthropic || w == wireBedrock {
		markCache(prompt)
	}
	limit := int64(m.conf.MaxOutput)
	call := fantasy.Call{Prompt: prompt, MaxOutputTokens: &limit, UserAgent: m.conf.UserAgent}
	for _, t := range req.Tools {
		schema, err := plainSchema(t.Parameters)
		if err != nil {
			return fantasy.Call{}, fmt.Errorf("parameters of tool %s: %w", t.Name, err)
		}
		call.Tools = append(call.Tools, fantasy.FunctionTool{Name: t.Name, Description: t.Description, InputSchema: schema})
	}
	return call, nil
}

func toPrompt(req Request) (fantasy.Prompt, error) {
	var prompt fantasy.Prompt
	if req.System != "" {
		prompt = append(prompt, fantasy.Message{Role: fantasy.MessageRoleSystem,
			Content: []fantasy.MessagePart{fantasy.TextPart{Text: req.System}}})
	}
	for i, msg := range req.Messages {
		var parts []fantasy.MessagePart
		role := fantasy.MessageRole(msg.Role)
		switch msg.Role {
		case RoleUser:
			parts = append(parts, fantasy.TextPart{Text: msg.Text})
		case RoleAssistant:
			for _, r := range msg.Reasoning {
				options, err := transparent(r.Opaque)
				if err != nil {
					return nil, fmt.Errorf("reasoning of message %d: %w", i, err)
				}
				parts = append(parts, fantasy.ReasoningPart{Text: r.Text, ProviderOptions: options})
			}
			if msg.Text != "" {
				parts = append(parts, fantasy.TextPart{Text: msg.Text})
			}
			for _, c := range msg.Calls {
				input := c.Input
				if !json.Valid([]byte(input)) {
					// Vendors refuse a conversation with malformed input in it; the
					// result of the call says that it was malformed.
					input = "{}"
				}
				parts = append(parts, fantasy.ToolCallPart{ToolCallID: c.ID, ToolName: c.Name, Input: input})
			}
		case RoleTool:
			for _, r := range msg.Results {
				parts = append(parts, fantasy.ToolResultPart{ToolCallID: r.CallID, Output: output(r)})
			}
		default:
			return nil, fmt.Errorf("message %d has the unknown role %q", i, msg.Role)
		}
		if len(parts) > 0 {
			prompt = append(prompt, fantasy.Message{Role: role, Content: parts})
		}
	}
	return prompt, nil
}

func output(r Result) fantasy.ToolResultOutputContent {
	switch {
	case len(r.Media) > 0:
		return fantasy.ToolResultOutputContentMedia{Data: base64.StdEncoding.EncodeToString(r.Media), MediaType: r.Type, Text: r.Text}
	case r.Failed:
		return fantasy.ToolResultOutputContentError{Error: errors.New(r.Text)}
	}
	return fantasy.ToolResultOutputContentText{Text: r.Text}
}

// markCache asks Anthropic to keep what comes before the system prompt's end and
// before the ends of the last two messages that are not the model's own.
func markCache(prompt fantasy.Prompt) {
	options := anthropic.NewProviderCacheControlOptions(&anthropic.ProviderCacheControlOptions{
		CacheControl: anthropic.CacheControl{Type: "ephemeral"}})
	marked := 0
	for i := len(prompt) - 1; i >= 0; i-- {
		switch role := prompt[i].Role; {
		case role == fantasy.MessageRoleSystem:
			prompt[i].ProviderOptions = options
		case role != fantasy.MessageRoleAssistant && marked < 2:
			prompt[i].ProviderOptions = options
			marked++
		}
	}
}

// opaque returns a vendor's metadata as JSON, nil if there is none.
func opaque(meta fantasy.ProviderMetadata) []byte {
	if len(meta) == 0 {
		return nil
	}
	b, err := json.Marshal(meta)
	if err != nil {
		return nil
	}
	return b
}

func transparent(b []byte) (fantasy.ProviderOptions, error) {
	if len(b) == 0 {
		return nil, nil
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return nil, err
	}
	return fantasy.UnmarshalProviderOptions(raw)
}

// plainSchema copies a schema into the Go types the library looks for: maps of
// any throughout, and a list of strings for what is required. It silently drops
// others.
func plainSchema(schema map[string]any) (map[string]any, error) {
	b, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	plain := map[string]any{}
	if err := json.Unmarshal(b, &plain); err != nil {
		return nil, err
	}
	if plain == nil {
		plain = map[string]any{}
	}
	if plain["type"] == nil {
		plain["type"] = "object"
	}
	if plain["properties"] == nil {
		plain["properties"] = map[string]any{}
	}
	if list, ok := plain["required"].([]any); ok {
		names := make([]string, 0, len(list))
		for _, v := range list {
			if name, ok := v.(string); ok {
				names = append(names, name)
			}
		}
		plain["required"] = names
	}
	return plain, nil
}
