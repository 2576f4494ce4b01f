package cmd

import (
	"fmt"
	"time"

	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/headless"
	"github.com/talkops-ai/talkops/runtime/model"
	"github.com/talkops-ai/talkops/runtime/session"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// price is what a machine costs in US dollars an hour: what the user says, else the
// vendor's list price. A module has none: its word is not taken for it.
func price(cfg *config.Config, p sandbox.Provider, spec sandbox.Spec) (usd float64, known bool) {
	if own := cfg.Providers[p.Describe().Name].USDPerHour; own != nil {
		return *own, true
	}
	usd = sandbox.Price(p, spec)
	return usd, usd > 0
}

// cost estimates what a machine on record has cost until now. Cfg may be nil.
func cost(cfg *config.Config, l session.Lease) (usd float64, known bool) {
	known = l.Price > 0
	if cfg != nil {
		if own := cfg.Providers[l.Provider].USDPerHour; own != nil {
			l.Price, known = *own, true
		}
	}
	if l.Created.IsZero() {
		return 0, false
	}
	return l.CostUSD(l.Created, time.Now()), known
}

// spent words a cost: "about $0.07"; "-" if it is not known.
func spent(cfg *config.Config, l session.Lease) string {
	usd, known := cost(cfg, l)
	if !known {
		return "-"
	}
	return dollars(usd)
}

func dollars(usd float64) string {
	if usd > 0 && usd < 0.005 {
		return "under $0.01"
	}
	return fmt.Sprintf("about $%.2f", usd)
}

// warnBudget says what --max-cost-usd cannot count.
func (a *app) warnBudget(cfg *config.Config, b *box, s *session.Session, m model.Info, p *headless.Printer) {
	if cfg.Run.MaxCostUSD <= 0 {
		return
	}
	name := cfg.Sandbox.Provider
	machine := s.Fresh && b.priced
	switch {
	case !m.Price.Known() && !machine:
		p.Warn("the price of %s:%s is not known, so --max-cost-usd cannot stop this run", m.Provider, m.Name)
	case !m.Price.Known():
		p.Warn("the price of %s:%s is not known, so --max-cost-usd counts the sandbox alone", m.Provider, m.Name)
	}
	if s.Fresh && !b.priced {
		p.Warn("what the sandbox costs is not known and does not count towards --max-cost-usd; to say it: sandboxes.providers.%s.usd_per_hour", name)
	}
}
