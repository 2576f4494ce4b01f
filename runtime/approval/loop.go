package approval

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const mostLoops = 5 // in loops

// loop judges a body that may run again, from where it left the shell.
func (c *command) loop(body func()) {
	if c.loops++; c.loops > mostLoops {
		c.find(TX, "is nested too deeply to be read")
	}
	defer func() { c.loops-- }()
	at, found := slices.Clone(c.dirs), len(*c.found)
	body()
	if !slices.Equal(c.dirs, at) && c.loops <= mostLoops {
		*c.found, c.dirs = (*c.found)[:found], nil
		body()
		c.dirs = nil
	}
}

func (c *command) each(x *syntax.ForClause) {
	switch iter := x.Loop.(type) {
	case *syntax.WordIter:
		name := iter.Name.Value
		c.part = "for " + name
		c.changed(name, word{})
		c.numbered(name, nil)
		var items []word
		for _, w := range iter.Items {
			items = append(items, c.resolve(w)...)
		}
		known := !x.Select && iter.InPos.IsValid() && len(items) > 0 && len(items) <= 20
		foreign := slices.ContainsFunc(iter.Items, c.suspect)
		for _, w := range iter.Items {
			known = known && steady(w)
		}
		for _, item := range items {
			known = known && item.static && !item.many
			foreign = foreign || item.glob
		}
		before := c.mine[name]
		c.mine[name] = true
		if foreign || !known {
			c.take(name)
		}
		if !known {
			c.loosen(name)
			c.loop(func() { c.branch(x.Do) })
			c.mine[name] = before
			return
		}
		for _, item := range items {
			c.settle(name, item.text, iter.Name.Pos())
			c.patterns[name] = item.glob
			c.loop(func() { c.branch(x.Do) })
		}
		delete(c.vars, name)
	default:
		c.part = "for"
		if loop, is := iter.(*syntax.CStyleLoop); is {
			c.set(loop.Init)
		}
		c.workedOut(x.Loop.(syntax.Node))
		c.nested(x.Loop.(syntax.Node))
		c.loop(func() { c.branch(x.Do) })
	}
}

// steady reports whether a word of a loop is constant, or a pattern that is.
func steady(w *syntax.Word) bool {
	copied := *w
	copied.Parts = slices.Clone(w.Parts)
	for i, p := range copied.Parts {
		if l, is := p.(*syntax.Lit); is {
			if strings.HasPrefix(l.Value, "~") {
				return false
			}
			copied.Parts[i] = &syntax.Lit{Value: strings.NewReplacer("*", "", "?", "", "[", "").Replace(l.Value)}
		}
	}
	return constant(&copied)
}
