// SPDX-License-Identifier: Apache-2.0

package command

import (
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/ensemble"
)

// offered parts the tools of a catalog into those that the model is offered
// and those that are set aside, also by the model; which may be nil.
func offered(catalog *ensemble.Catalog, model converse.Model) ([]*ensemble.Tool, []ensemble.Aside) {
	aside := catalog.Aside()
	screener, _ := model.(converse.Screener)
	var tools []*ensemble.Tool
	for _, tool := range catalog.Tools() {
		definition := *tool.Definition()
		definition.Name = tool.Name()
		if err := converse.Screen(&definition, screener); err != nil {
			aside = append(aside, ensemble.Aside{Ensemble: tool.Ensemble().Name(), Tool: tool.Definition().Name, Reason: err.Error()})
			continue
		}
		tools = append(tools, tool)
	}
	return tools, aside
}
