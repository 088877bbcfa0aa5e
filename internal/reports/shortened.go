// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/contain"
)

// Shortened returns, by ensemble, the tools whose definitions are shortened for the
// model.
func Shortened(tools []*ensemble.Tool, model converse.Model) map[string][]Aside {
	found := map[string][]Aside{}
	limiter, ok := model.(converse.Limiter)
	if !ok {
		return found
	}
	for _, tool := range tools {
		var what string
		err := contain.Call("Model.Shortened", func() { what = limiter.Shortened(tool.Definition()) })
		if err != nil {
			what = err.Error()
		}
		if what != "" {
			name := tool.Ensemble().Name()
			found[name] = append(found[name], Aside{Ensemble: name, Tool: tool.Definition().Name, Reason: what})
		}
	}
	return found
}
