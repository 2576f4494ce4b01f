package approval

// A Tier says what a command does to the world, from looking to what never runs.
type Tier string

// The tiers, mildest first.
const (
	T0  Tier = "T0"  // looks
	T1  Tier = "T1"  // reads shared infrastructure
	T2  Tier = "T2"  // changes the workspace
	T1s Tier = "T1s" // reads secrets
	T2d Tier = "T2d" // destroys in the workspace
	T3n Tier = "T3n" // reads the network
	T3  Tier = "T3"  // runs project code, changes the machine
	T4  Tier = "T4"  // acts outside
	TX  Tier = "TX"  // is disguised
	T5  Tier = "T5"  // never
)

// A Finding is one thing that a part of a command line does.
type Finding struct {
	Tier   Tier
	Part   string // the part, as it would be typed
	Reason string // one phrase: "acts on a cluster"

	store    bool     // with T1s: a store of secrets elsewhere, which a sandbox does not contain
	whole    bool     // with T2d: the whole workspace
	machine  bool     // with T3: changes the machine itself
	typed    bool     // unknown program: a model may be asked
	unparsed bool     // the text cannot be read
	vague    bool     // the reason is that nothing is known: any other is a better one
	away     bool     // on this computer, and maybe in a directory outside the workspace
	words    []string // the simple command, where it is plain and static; else nil
}

// A Verdict is what the tier table says.
type Verdict string

// The verdicts, mildest first.
const (
	Allow Verdict = "allow"
	Ask   Verdict = "ask"
	Deny  Verdict = "deny"
)

// A Column of the tier table: where a command would run.
type column int

const (
	onHost       column = iota // this computer, or a machine that outlives the session
	onRemote                   // such a machine elsewhere
	onDisposable               // a machine of the session's own
	inProduction
)

// verdict is the cell of the table in smart mode.
func (f Finding) verdict(at column) Verdict {
	switch f.Tier {
	case T0, T1, T2:
		return Allow
	case T5:
		return Deny
	case T4, TX:
		return Ask
	case T1s:
		if at == onDisposable && !f.store {
			return Allow
		}
	case T2d:
		if at == onDisposable && !f.whole {
			return Allow
		}
	case T3, T3n:
		if at == onDisposable || at == onRemote && f.machine {
			return Allow
		}
	}
	return Ask
}

var severity = map[Verdict]int{Allow: 0, Ask: 1, Deny: 2}

var order = map[Tier]int{T0: 0, T1: 1, T2: 2, T1s: 3, T2d: 4, T3n: 5, T3: 6, T4: 7, TX: 8, T5: 9}

// worst returns the finding that decides at the column, and its verdict. Nothing
// found is looking.
func worst(findings []Finding, at column) (Finding, Verdict) {
	decides, verdict := Finding{Tier: T0, Reason: "looks"}, Allow
	for _, f := range findings {
		v := f.verdict(at)
		if severity[v] > severity[verdict] || v == verdict && (order[f.Tier] > order[decides.Tier] || decides.vague && f.Tier == decides.Tier) {
			decides, verdict = f, v
		}
	}
	return decides, verdict
}

// A Judgement is what is thought of a command line.
type Judgement struct {
	Verdict Verdict
	Finding Finding // what decides
	All     []Finding
}

// The environments that a command may act on. Empty is not known.
const (
	Production  = "production"
	Development = "development"
)

// Judge classifies a command line and looks it up in the table of smart mode.
func Judge(line string, at Context, environment string) Judgement {
	all := Classify(line, at)
	f, v := worst(all, at.column(environment))
	return Judgement{v, f, all}
}

func (c Context) column(environment string) column {
	switch {
	case environment == Production:
		return inProduction
	case c.Place.Disposable:
		return onDisposable
	case c.Place.Host:
		return onHost
	}
	return onRemote
}
