package approval

import (
	"maps"
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

const mostLoops = 5 // in loops

// loop judges a body that may run again: what it leaves holds at its beginning. It is
// read until nothing more of that is new.
func (c *command) loop(body func()) {
	if c.loops++; c.loops > mostLoops {
		c.find(TX, "is nested too deeply to be read")
	}
	defer func() { c.loops-- }()
	found := len(*c.found)
	for pass := 0; ; pass++ {
		at, vars, taken := slices.Clone(c.dirs), maps.Clone(c.vars), maps.Clone(c.taken)
		body()
		again := c.dirs == nil && at != nil || len(c.dirs) != len(at)
		if again {
			c.dirs = nil
		}
		for name, value := range vars {
			if now, known := c.vars[name]; !known || now != value {
				delete(vars, name)
				again = true
			}
		}
		for name, is := range c.taken {
			again = again || is && !taken[name]
		}
		for name, was := range taken {
			c.taken[name] = c.taken[name] || was
		}
		if !again || c.loops > mostLoops {
			return
		}
		if pass == 2 { // more than two that depend on each other
			c.dirs, vars = nil, map[string]string{}
		}
		*c.found, c.vars = (*c.found)[:found], vars
	}
}

func (c *command) each(x *syntax.ForClause) {
	switch iter := x.Loop.(type) {
	case *syntax.WordIter:
		name := iter.Name.Value
		c.part = "for " + name
		c.variable(name)
		c.numbered(name, nil)
		var items []word
		for _, w := range iter.Items {
			items = append(items, c.resolve(w)...)
		}
		known := iter.InPos.IsValid() && len(items) > 0 && len(items) <= 20
		foreign := slices.ContainsFunc(iter.Items, c.suspect)
		for _, item := range items {
			known = known && item.static
			foreign = foreign || item.glob
		}
		before := c.mine[name]
		c.mine[name] = true
		if !known {
			delete(c.vars, name)
			c.taken[name] = true
			c.loop(func() { c.branch(x.Do) })
			c.mine[name] = before
			return
		}
		for _, item := range items {
			c.vars[name], c.patterns[name], c.taken[name] = item.text, item.glob, foreign
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
