// SPDX-License-Identifier: Apache-2.0

package invoker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

func ExampleNew() {
	type Query struct {
		City string `json:"city" jsonschema:"city to report on"`
		Days int    `json:"days,omitempty" jsonschema:"how many days ahead"`
	}
	type Report struct {
		City   string `json:"city"`
		Degree int    `json:"degree"`
	}
	weather, err := invoker.New("weather", "Report the weather.",
		func(_ context.Context, q Query) (Report, error) {
			return Report{City: q.City, Degree: 7}, nil
		}, nil)
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	output, err := weather.Invoke(ctx, &invoker.Call{Arguments: json.RawMessage(`{"city":"Oslo"}`)})
	fmt.Printf("%s %v\n", output.Content[0].(canister.StructuredContent).JSON, err)

	_, err = weather.Invoke(ctx, &invoker.Call{Arguments: json.RawMessage(`{"citty":"Oslo","days":"two"}`)})
	fmt.Println(invoker.AsFailure(err).Message)
	// Output:
	// {"city":"Oslo","degree":7} <nil>
	// The arguments do not fit the tool's input schema:
	// /citty: is not a known property; the known ones are city, days (did you mean city?)
	// /city: is missing (required)
	// /days: "two" (a string) is not an integer
}

// Color is a type with a fixed set of values.
type Color string

func (Color) JSONSchema() string { return `{"type":"string","enum":["red","green"]}` }

func ExampleDescriber() {
	type Paint struct {
		Color Color `json:"color"`
	}
	paint, err := invoker.New("paint", "Paint the wall.",
		func(_ context.Context, p Paint) (string, error) { return "It is " + string(p.Color) + ".", nil }, nil)
	if err != nil {
		log.Fatal(err)
	}
	_, err = paint.Invoke(context.Background(), &invoker.Call{Arguments: json.RawMessage(`{"color":"mauve"}`)})
	fmt.Println(invoker.AsFailure(err).Message)
	// Output:
	// The arguments do not fit the tool's input schema:
	// /color: "mauve" is not one of "red", "green"
}

func ExampleFailf() {
	type Query struct {
		Path string `json:"path"`
	}
	read, err := invoker.New("read", "Read a file.",
		func(_ context.Context, q Query) (string, error) {
			return "", invoker.Failf(invoker.NotFound, "%s: %w", q.Path, fs.ErrNotExist)
		}, nil)
	if err != nil {
		log.Fatal(err)
	}
	_, err = read.Invoke(context.Background(), &invoker.Call{Arguments: json.RawMessage(`{"path":"a.txt"}`)})
	failure := invoker.AsFailure(err)
	fmt.Println(failure.Code)
	fmt.Println(failure.Message)
	fmt.Println(errors.Is(failure, fs.ErrNotExist))
	// Output:
	// NOT_FOUND
	// a.txt: file does not exist
	// true
}

func ExampleRaw() {
	def := invoker.Definition{
		Name:        "add",
		Description: "Add two numbers.",
		InputSchema: json.RawMessage(`{
			"type": "object",
			"properties": {"a": {"type": "number"}, "b": {"type": "number"}},
			"required": ["a", "b"]
		}`),
	}
	add, err := invoker.Raw(def, func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
		var numbers struct{ A, B float64 }
		if err := json.Unmarshal(call.Arguments, &numbers); err != nil {
			return invoker.Output{}, err
		}
		return invoker.Output{Content: canister.Texts(fmt.Sprint(numbers.A + numbers.B))}, nil
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	output, err := add.Invoke(context.Background(), &invoker.Call{Arguments: json.RawMessage(`{"a":1,"b":2.5}`)})
	fmt.Println(canister.TextOf(output.Content), err)
	// Output:
	// 3.5 <nil>
}

func ExampleCallFrom() {
	count, err := invoker.New("count", "Count to two.",
		func(ctx context.Context, _ struct{}) (string, error) {
			call := invoker.CallFrom(ctx)
			for i := range 2 {
				call.Report(invoker.Progress{Done: float64(i + 1), Total: 2})
			}
			return "counted for " + call.ID, nil
		}, nil)
	if err != nil {
		log.Fatal(err)
	}
	output, err := count.Invoke(context.Background(), &invoker.Call{
		ID:       "inv-1",
		Progress: func(p invoker.Progress) { fmt.Println(p.Done, "of", p.Total) },
	})
	fmt.Println(canister.TextOf(output.Content), err)
	// Output:
	// 1 of 2
	// 2 of 2
	// counted for inv-1 <nil>
}
