package model

import (
	"slices"
	"testing"
)

func TestKeysOfTheCatalogue(t *testing.T) {
	keys := CatalogueKeys()
	if !slices.Contains(keys, "GROQ_API_KEY") || slices.Contains(keys, "GITHUB_TOKEN") || slices.Contains(keys, "") {
		t.Errorf("the keys are %q", keys)
	}
}
