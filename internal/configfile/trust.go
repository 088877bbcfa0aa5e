// SPDX-License-Identifier: Apache-2.0

package configfile

import (
	"encoding/json"
	"os"
	"slices"
	"strings"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/config/values"
	"github.com/consort-go/consort/internal/exit"
)

// AddTrusted adds trusted values of the command line, as NAME=VALUE, to those of the configuration. Errors never
// contain a value.
func AddTrusted(cfg *config.Config, assignments []string) error {
	for _, assignment := range assignments {
		name, text, found := strings.Cut(assignment, "=")
		if !found || name == "" {
			return exit.Usagef("--trust: expected NAME=VALUE, such as --trust user=ada")
		}
		value := values.Plain(text)
		if variable, ok := strings.CutPrefix(text, "env:"); ok {
			if text, ok = os.LookupEnv(variable); !ok {
				return exit.Usagef("--trust %s: the environment variable is not set: %s", name, variable)
			}
			value = values.Hidden(text)
			if slices.Contains(cfg.PublicVariables, variable) {
				value = values.Plain(text)
			}
		}
		if text == "" {
			return exit.Usagef("--trust %s: expected a value that is not empty", name)
		}
		if cfg.Trusted == nil {
			cfg.Trusted = map[string]values.Trusted{}
		}
		// A value that the configuration calls a secret remains one.
		cfg.Trusted[name] = values.Trusted{Value: value, JSON: isJSON(text), Secret: cfg.Trusted[name].Secret}
	}
	return nil
}

// isJSON reports whether text is taken as JSON, and not as a string.
func isJSON(text string) bool { return json.Valid([]byte(text)) && strings.TrimSpace(text) != "null" }
