// SPDX-License-Identifier: Apache-2.0

package command

import (
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/contain"
)

// shortened returns, by ensemble, the tools whose definitions are shortened for the
// model.
func shortened(tools []*ensemble.Tool, model converse.Model) map[string][]asideJSON {
	found := map[string][]asideJSON{}
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
			found[name] = append(found[name], asideJSON{Ensemble: name, Tool: tool.Definition().Name, Reason: what})
		}
	}
	return found
}
