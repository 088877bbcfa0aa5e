// SPDX-License-Identifier: Apache-2.0

package demoserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// place is a city of the atlas.
type place struct {
	name    string
	utc     time.Duration // offset of its clocks, in winter
	celsius int
	sky     string
}

var places = []place{
	{"Lisbon", 0, 16, "sunny"},
	{"Nairobi", 3 * time.Hour, 24, "light clouds"},
	{"Oslo", time.Hour, -3, "snow"},
	{"Quito", -5 * time.Hour, 14, "showers"},
	{"Tokyo", 9 * time.Hour, 9, "clear"},
}

type weatherQuery struct {
	City string `json:"city" jsonschema:"name of the city"`
}

type weatherReport struct {
	City    string `json:"city"`
	Celsius int    `json:"celsius" jsonschema:"temperature at noon"`
	Sky     string `json:"sky"`
}

type timeQuery struct {
	From string `json:"from" jsonschema:"city of the given time"`
	To   string `json:"to" jsonschema:"city of the wanted time"`
	Time string `json:"time" jsonschema:"time of day in the first city, as 15:04"`
}

type timeAnswer struct {
	City string `json:"city"`
	Time string `json:"time" jsonschema:"time of day, as 15:04"`
}

// Atlas returns a server that reports the weather and the time in a few cities. A lookup
// takes pace.
func Atlas(pace time.Duration) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "atlas", Title: "A small atlas", Version: "1.0.0"}, nil)
	readOnly := &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(bool)}
	mcp.AddTool(server, &mcp.Tool{
		Name: "weather", Title: "Weather", Annotations: readOnly,
		Description: "Report tomorrow's weather in a city.",
	}, func(ctx context.Context, _ *mcp.CallToolRequest, q weatherQuery) (*mcp.CallToolResult, weatherReport, error) {
		if err := pause(ctx, pace); err != nil {
			return nil, weatherReport{}, err
		}
		city, err := find(q.City)
		if err != nil {
			return nil, weatherReport{}, err
		}
		return says("%s: %d °C, %s", city.name, city.celsius, city.sky), weatherReport{city.name, city.celsius, city.sky}, nil
	})
	mcp.AddTool(server, &mcp.Tool{
		Name: "local_time", Title: "Local time", Annotations: readOnly,
		Description: "Convert a time of day in one city to the time in another.",
	}, func(ctx context.Context, _ *mcp.CallToolRequest, q timeQuery) (*mcp.CallToolResult, timeAnswer, error) {
		if err := pause(ctx, pace); err != nil {
			return nil, timeAnswer{}, err
		}
		answer, err := localTime(q)
		if err != nil {
			return nil, timeAnswer{}, err
		}
		return says("%s in %s is %s in %s", q.Time, q.From, answer.Time, answer.City), answer, nil
	})
	return server
}

func localTime(q timeQuery) (timeAnswer, error) {
	from, err := find(q.From)
	if err != nil {
		return timeAnswer{}, err
	}
	to, err := find(q.To)
	if err != nil {
		return timeAnswer{}, err
	}
	clock, err := time.Parse("15:04", q.Time)
	if err != nil {
		return timeAnswer{}, fmt.Errorf("the time %q is not of the form 15:04", q.Time)
	}
	return timeAnswer{to.name, clock.Add(to.utc - from.utc).Format("15:04")}, nil
}

// find returns the city with the given name. The error suggests a city that shares most
// of its letters, because a model can act on that.
func find(name string) (place, error) {
	for _, p := range places {
		if strings.EqualFold(p.name, strings.TrimSpace(name)) {
			return p, nil
		}
	}
	nearest := slices.MaxFunc(places, func(a, b place) int { return alike(a.name, name) - alike(b.name, name) })
	if len(name) > 0 && 2*alike(nearest.name, name) > len(name) {
		return place{}, fmt.Errorf("the atlas has no city %q; did you mean %s?", name, nearest.name)
	}
	names := make([]string, len(places))
	for i, p := range places {
		names[i] = p.name
	}
	return place{}, fmt.Errorf("the atlas has no city %q; it has %s", name, strings.Join(names, ", "))
}

// alike counts the letters that two names have in common.
func alike(a, b string) int {
	n, rest := 0, strings.ToLower(b)
	for _, letter := range strings.ToLower(a) {
		if i := strings.IndexRune(rest, letter); i >= 0 {
			n++
			rest = rest[:i] + rest[i+len(string(letter)):]
		}
	}
	return n
}

// says returns a result with one line of text.
func says(format string, args ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
