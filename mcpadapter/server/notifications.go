// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"iter"
	"slices"

	"github.com/consort-go/consort/ensemble"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// notifierTool and notifierName are the names of a tool, and of a resource and a prompt, that are
// registered with the SDK but never shown to clients. Adding one of them again makes the SDK notify
// all sessions and subscriptions of a change; it has no other way. receive answers all requests that
// could reach them. A URI needs a colon, and the SDK logs an error at one in the name of a tool.
const (
	notifierTool = "consort.notifier"
	notifierName = "consort:notifier"
)

// notifyClients notifies clients of the roster's changes, until the roster or the server is
// closed.
func (s *Server) notifyClients(ctx context.Context, news iter.Seq[ensemble.News]) {
	for n := range news {
		switch n.Kind {
		case ensemble.ToolsChanged:
			if s.offers.tools.Load() == nil { // no toolset has been built yet
				s.listeners.changed(toolList)
			} else {
				_, _ = s.toolset(ctx)
			}
		case ensemble.ResourcesChanged:
			s.listeners.changed(resourceList)
		case ensemble.PromptsChanged:
			s.listeners.changed(promptList)
		case ensemble.ResourceUpdated:
			s.listeners.mu.Lock()
			s.listeners.updating = n.Ensemble
			s.listeners.mu.Unlock()
			_ = s.sdk.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: n.URI})
		}
	}
}

// notifyIfToolsChanged tells the clients that the tools have changed. The first toolset does
// not count as a change.
func (s *Server) notifyIfToolsChanged(before, after *toolset) {
	if before == nil || slices.EqualFunc(before.tools, after.tools, func(a, b *offeredTool) bool {
		return a.name == b.name && string(a.listed) == string(b.listed)
	}) {
		return
	}
	s.listeners.changed(toolList)
}

// notify makes the SDK send the notification of a changed list to all sessions, as far as
// filter lets it.
func (s *Server) notify(kind listKind) {
	switch kind {
	case toolList:
		s.sdk.AddTool(&mcp.Tool{Name: notifierTool, InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
	case resourceList:
		s.sdk.AddResource(&mcp.Resource{Name: notifierName, URI: notifierName}, nil)
	case promptList:
		s.sdk.AddPrompt(&mcp.Prompt{Name: notifierName}, nil)
	}
}
