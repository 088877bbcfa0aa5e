// SPDX-License-Identifier: Apache-2.0

package values_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/config/values"
)

// Nothing that prints a value or a table shows its secret, however it is reached.
func TestPrintingShowsNoSecret(t *testing.T) {
	variables := map[string]string{"TOKEN": "xyzzy"}
	type settings struct {
		Value   values.Value
		Table   values.Table
		Trusted *values.Trusted
	}
	held := settings{
		values.New("Bearer xyzzy", "Bearer ${TOKEN}", variables),
		values.NewTable(map[string]any{"key": "xyzzy"}, variables),
		&values.Trusted{Value: values.Hidden("xyzzy")},
	}
	encoded, err := json.Marshal(held)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{string(encoded)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		texts = append(texts, fmt.Sprintf(verb, held), fmt.Sprintf(verb, &held), fmt.Sprintf(verb, held.Value), fmt.Sprintf(verb, held.Table))
	}
	for _, text := range texts {
		if strings.Contains(text, "xyzzy") || strings.Contains(text, "78797a7a79") {
			t.Errorf("a secret is printed: %s", text)
		}
	}
}

func TestSecrets(t *testing.T) {
	isPublic := func(variable string) bool { return variable == "REGION" }
	variables := map[string]string{"REGION": "eu", "TOKEN": "xyzzy"}
	for _, c := range []struct {
		name  string
		found []string
		want  []string
	}{
		{"variables", values.New("eu xyzzy", "${REGION} ${TOKEN}", variables).Secrets(isPublic), []string{"xyzzy"}},
		{"hidden", values.Hidden("plugh-plugh").Secrets(isPublic), []string{"plugh-plugh"}},
		{"plain", values.Plain("plugh").Secrets(isPublic), nil},
		{"zero", values.Value{}.Secrets(isPublic), nil},
		{"table", values.NewTable(map[string]any{"zone": "eu", "api_key": "plugh-plugh"}, variables).Secrets(isPublic), []string{"xyzzy", "plugh-plugh"}},
		{"empty table", values.Table{}.Secrets(isPublic), nil},
	} {
		for _, want := range c.want {
			if !slices.Contains(c.found, want) {
				t.Errorf("%s: %q has no %q", c.name, c.found, want)
			}
		}
		if slices.Contains(c.found, "eu") || slices.Contains(c.found, "plugh") || len(c.want) == 0 && len(c.found) > 0 {
			t.Errorf("%s: %q", c.name, c.found)
		}
	}
}
