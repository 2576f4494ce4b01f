package sandbox

// A Description is what a provider says of itself. It gives the configuration
// keys, environment names, help, redaction and the sign-in check.
type Description struct {
	Name     string    // as in --sandbox NAME: lower case letters, digits, '-'
	Title    string    // as people write it: "Daytona"
	Dir      string    // the documented working directory; empty: the current directory
	SignIn   string    // what to do to sign in, one phrase: `export DAYTONA_API_KEY="your-key"`
	Settings []Setting // everything the provider reads, declared once
	Logins   []Login   // ways to sign in, in order of preference; none: nothing to sign in to
	Features Features
}

// A Setting is one value a provider takes from its surroundings.
type Setting struct {
	Key     string   // its name in Spec.Settings: "api_key"
	Env     []string // environment variables that give it, first set wins
	Help    string   // one phrase for documentation
	Secret  bool     // never shown, stored or logged
	URL     bool     // an endpoint: https, or any scheme on loopback
	File    bool     // the path of a file; a leading "~/" is the user's home directory
	Default string
}

// A Login is one complete set of settings that signs in, by Setting.Key.
type Login []string

// Features says what a provider can do. A declaration is a promise; what is not
// declared answers errors.ErrUnsupported without network traffic.
type Features struct {
	Host     bool // the sandbox is this computer: nothing is isolated, created or ended
	Attach   bool // Spec.ID opens an existing machine
	Snapshot bool // Spec.Snapshot is honoured
	Image    bool // Spec.Image is honoured
	Lifetime bool // Spec.Lifetime is enforced by the vendor
	Idle     bool // Spec.Idle is enforced by the vendor
	Labels   bool // Spec.Labels are kept by the vendor
}

// Login returns the first login whose settings are all present in values, and
// whether there is one. A provider without logins is always signed in.
func (d Description) Login(values map[string]string) (Login, bool) {
	for _, login := range d.Logins {
		if len(login.Missing(values)) == 0 {
			return login, true
		}
	}
	return nil, len(d.Logins) == 0
}

// Missing returns the keys of l that have no value, in order.
func (l Login) Missing(values map[string]string) []string {
	var missing []string
	for _, key := range l {
		if values[key] == "" {
			missing = append(missing, key)
		}
	}
	return missing
}

// Setting returns the setting with that key.
func (d Description) Setting(key string) (Setting, bool) {
	for _, s := range d.Settings {
		if s.Key == key {
			return s, true
		}
	}
	return Setting{}, false
}

// Values resolves every declared setting: getenv gives an environment variable
// ("" if unset). Settings without a value or default are absent from the result.
func (d Description) Values(getenv func(string) string) map[string]string {
	values := make(map[string]string)
	for _, s := range d.Settings {
		value := s.Default
		for _, name := range s.Env {
			if v := getenv(name); v != "" {
				value = v
				break
			}
		}
		if value != "" {
			values[s.Key] = value
		}
	}
	return values
}
