package cmd

import (
	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/runtime/web"
)

// webTools returns the tools that look things up on the web, which act from this
// computer, and the hosts they may reach without a question.
func (a *app) webTools(cfg *config.Config) ([]tool.Tool, approval.Hosts, error) {
	hosts, err := approval.ParseHosts(cfg.Web.AllowHosts)
	if err != nil {
		return nil, nil, &usageError{"web.allow_hosts: " + err.Error()}
	}
	search, err := web.Choose(cfg.Web.SearchProvider, cfg.Web.SearxngURL, a.getenv())
	if err != nil {
		return nil, nil, &usageError{err.Error()}
	}
	rules, err := approval.ParseRules(nil, cfg.Approval.Ask, cfg.Approval.Deny)
	if err != nil {
		return nil, nil, &usageError{err.Error()}
	}
	barred := func(address string) bool { return rules.Bar(real(cfg.Root), "fetch_url", address) }
	return web.Tools(web.Options{UserAgent: "talkops/" + version, Search: search, Allowed: hosts.Has, Barred: barred}), hosts, nil
}
