package cmd

import (
	"context"

	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/headless"
	"github.com/talkops-ai/talkops/runtime/model"
	"github.com/talkops-ai/talkops/runtime/opinion"
)

// opinion is the model that is asked about programs the rules do not know, on this
// computer only; nil if none is set or it cannot be had. A replay asks nobody.
func (a *app) opinion(ctx context.Context, cfg *config.Config, f runFlags, place approval.Place, p *headless.Printer, spent func(usd float64)) approval.Opinion {
	if cfg.Approval.Model == "" || !place.Host || f.replay != "" {
		return nil
	}
	endpoints := map[string]model.Endpoint{}
	for name, e := range cfg.Model.Providers {
		endpoints[name] = model.Endpoint{BaseURL: e.BaseURL, APIKeyEnv: e.APIKeyEnv}
	}
	m, err := a.open(ctx, model.Wish{Model: cfg.Approval.Model, Providers: endpoints, Getenv: a.getenv()}, p, "unknown programs judged by")
	if err != nil {
		p.Warn("approval.model is not asked: %v", err)
		return nil
	}
	return (&opinion.Asker{Model: m, Spent: spent, Warn: p.Warn, Mask: a.redact.Text}).Allows
}
