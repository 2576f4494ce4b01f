package model

import (
	"slices"
	"strings"
	"sync"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"
)

// A vendor is a provider known without configuration.
type vendor struct {
	name      string
	catalogue string   // its id in the catalogue; "" if it has no list of models
	keyVars   []string // where a key may be, best first
	baseVar   string   // overrides baseURL; may be empty
	baseURL   string   // "" is the library's own
}

// vendors are in the order in which one is chosen.
var vendors = []vendor{
	{name: "anthropic", catalogue: "anthropic", keyVars: []string{"ANTHROPIC_API_KEY"}, baseVar: "ANTHROPIC_BASE_URL"},
	{name: "openai", catalogue: "openai", keyVars: []string{"OPENAI_API_KEY"}, baseVar: "OPENAI_BASE_URL"},
	{name: "gemini", catalogue: "gemini", keyVars: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}},
	{name: "bedrock", catalogue: "bedrock", keyVars: []string{"AWS_BEARER_TOKEN_BEDROCK"}},
	{name: "openrouter", catalogue: "openrouter", keyVars: []string{"OPENROUTER_API_KEY"}, baseURL: "https://openrouter.ai/api/v1"},
	{name: "ollama", baseURL: "http://127.0.0.1:11434/v1"},
}

// awsVars say that the AWS chain has something to sign with.
var awsVars = []string{"AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
	"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"}

// Providers returns the names of the known providers in the order of choice.
func Providers() []string {
	names := make([]string, len(vendors))
	for i, v := range vendors {
		names[i] = v.name
	}
	return names
}

// KeyVars returns the environment variables that may hold a provider's key.
func KeyVars(provider string) []string {
	v, _ := vendorOf(provider)
	return slices.Clone(v.keyVars)
}

// CatalogueKeys returns the variables that hold the keys of the catalogue's other
// providers, as GROQ_API_KEY, save those whose name says that more than models takes them.
func CatalogueKeys() []string {
	var all []string
	for name := range catalogue() {
		if v, ok := vendorOf(name); ok && !slices.Contains(Providers(), name) {
			for _, key := range v.keyVars {
				if strings.HasSuffix(key, "_API_KEY") && !slices.Contains(all, key) {
					all = append(all, key)
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

// vendorOf finds a provider in the short list, else one of the catalogue's that
// speaks OpenAI's wire, such as groq or deepseek.
func vendorOf(name string) (vendor, bool) {
	if i := slices.IndexFunc(vendors, func(v vendor) bool { return v.name == name }); i >= 0 {
		return vendors[i], true
	}
	p, ok := catalogue()[name]
	key, isVar := strings.CutPrefix(p.APIKey, "$")
	if !ok || p.Type != catwalk.TypeOpenAICompat || !isVar || !strings.HasPrefix(p.APIEndpoint, "https://") {
		return vendor{}, false
	}
	return vendor{name: name, catalogue: name, keyVars: []string{key}, baseURL: p.APIEndpoint}, true
}

// catalogue is read at its first use, not when the program starts.
var catalogue = sync.OnceValue(func() map[string]catwalk.Provider {
	all := map[string]catwalk.Provider{}
	for _, p := range embedded.GetAll() {
		all[string(p.ID)] = p
	}
	return all
})

func listed(provider, region string) (catwalk.Provider, bool) {
	v, _ := vendorOf(provider)
	id := v.catalogue
	if id == "bedrock" && strings.HasPrefix(region, "eu-") {
		id = string(catwalk.InferenceProviderBedrockEurope)
	}
	p, ok := catalogue()[id]
	return p, ok
}

func defaultName(provider, region string) string {
	p, _ := listed(provider, region)
	return p.DefaultLargeModelID
}

// Lookup returns what the catalogue knows of a model.
func Lookup(provider, name string) (Info, bool) {
	info, _, ok := catalogued(provider, name, "")
	return info, ok
}

// catalogued returns a model and its usual output limit.
func catalogued(provider, name, region string) (Info, int, bool) {
	p, _ := listed(provider, region)
	i := slices.IndexFunc(p.Models, func(m catwalk.Model) bool { return m.ID == name })
	if i < 0 {
		return Info{}, 0, false
	}
	m := p.Models[i]
	return Info{Provider: provider, Name: name, Window: int(m.ContextWindow), Price: Price{
		Input: m.CostPer1MIn, Output: m.CostPer1MOut,
		// The catalogue's names: "in cached" is put into the cache, "out cached" taken out.
		CacheWrite: m.CostPer1MInCached, CacheRead: m.CostPer1MOutCached,
	}}, int(m.DefaultMaxTokens), true
}
