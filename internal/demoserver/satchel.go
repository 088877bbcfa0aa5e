// SPDX-License-Identifier: Apache-2.0

package demoserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxItems bounds the packing list.
const maxItems = 100

// satchel is the packing list of one server.
type satchel struct {
	pace time.Duration

	mu    sync.Mutex
	items []string
}

type itemsQuery struct {
	Items []string `json:"items" jsonschema:"the items to put in or take out"`
}

type contents struct {
	Items []string `json:"items" jsonschema:"the items now in the satchel"`
}

type inspection struct {
	Items int `json:"items"`
	Grams int `json:"grams"`
}

// Satchel returns a server that keeps a packing list. Adding or removing items takes
// pace, and weighing takes half of pace for each item, with progress reports.
func Satchel(pace time.Duration) *mcp.Server {
	s := &satchel{pace: pace}
	server := mcp.NewServer(&mcp.Implementation{Name: "satchel", Title: "A packing list", Version: "1.0.0"}, nil)
	changes := &mcp.ToolAnnotations{IdempotentHint: true, DestructiveHint: new(bool), OpenWorldHint: new(bool)}
	mcp.AddTool(server, &mcp.Tool{
		Name: "pack", Title: "Pack", Annotations: changes,
		Description: "Put items into the satchel. Items already in it stay.",
	}, s.change(s.put))
	mcp.AddTool(server, &mcp.Tool{
		Name: "unpack", Title: "Unpack", Annotations: changes,
		Description: "Take items out of the satchel.",
	}, s.change(s.take))
	mcp.AddTool(server, &mcp.Tool{
		Name: "weigh", Title: "Weigh", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(bool)},
		Description: "Weigh the items in the satchel, one by one.",
	}, s.weigh)
	return server
}

// change returns the handler of a tool that changes the list.
func (s *satchel) change(how func([]string) error) mcp.ToolHandlerFor[itemsQuery, contents] {
	return func(ctx context.Context, _ *mcp.CallToolRequest, q itemsQuery) (*mcp.CallToolResult, contents, error) {
		if err := pause(ctx, s.pace); err != nil {
			return nil, contents{}, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := how(q.Items); err != nil {
			return nil, contents{}, err
		}
		return says("in the satchel: %s", strings.Join(s.items, ", ")), contents{slices.Clone(s.items)}, nil
	}
}

func (s *satchel) put(items []string) error {
	if len(s.items)+len(items) > maxItems {
		return fmt.Errorf("the satchel holds at most %d items", maxItems)
	}
	for _, item := range items {
		if !slices.Contains(s.items, item) {
			s.items = append(s.items, item)
		}
	}
	return nil
}

func (s *satchel) take(items []string) error {
	for _, item := range items {
		if !slices.Contains(s.items, item) {
			return fmt.Errorf("there is no %q in the satchel; there is %s", item, strings.Join(s.items, ", "))
		}
	}
	s.items = slices.DeleteFunc(s.items, func(item string) bool { return slices.Contains(items, item) })
	return nil
}

// weigh weighs the items of the list one by one, and reports progress for each.
func (s *satchel) weigh(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, inspection, error) {
	s.mu.Lock()
	items := slices.Clone(s.items)
	s.mu.Unlock()
	grams := 0
	for i, item := range items {
		if err := pause(ctx, s.pace/2); err != nil {
			return nil, inspection{}, err
		}
		grams += 100 + 60*len(item)
		report(ctx, req, i+1, len(items), item)
	}
	return says("%d items, %d g", len(items), grams), inspection{len(items), grams}, nil
}

// report sends a progress notification if the client requested progress.
func report(ctx context.Context, req *mcp.CallToolRequest, done, total int, message string) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return
	}
	// A client that has gone does not need the notification.
	_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
		ProgressToken: token, Progress: float64(done), Total: float64(total), Message: message,
	})
}
