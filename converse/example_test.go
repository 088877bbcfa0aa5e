// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/agenttool"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
)

type query struct {
	City string `json:"city" jsonschema:"name of a city"`
}

type report struct {
	Celsius int `json:"celsius"`
}

// weatherRoster has one ensemble of one Go function.
func weatherRoster() *ensemble.Roster {
	weather, err := invoker.New("weather", "Report today's weather.",
		func(ctx context.Context, q query) (report, error) {
			if q.City != "Oslo" {
				return report{}, invoker.Failf(invoker.NotFound, "there is no station in %s", q.City)
			}
			return report{Celsius: -4}, nil
		}, nil)
	if err != nil {
		log.Fatal(err)
	}
	roster, err := ensemble.NewRoster(ensemble.Local("local", weather))
	if err != nil {
		log.Fatal(err)
	}
	return roster
}

// weatherModel stands in for a language model: see package openaimodel.
func weatherModel() converse.Model {
	return conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{{Name: "local__weather", Arguments: `{"city":"Oslo"}`}}},
		conversetest.Line{Text: "It is -4 °C in Oslo: take a warm coat."},
	)
}

func ExampleConversation_Ask() {
	roster := weatherRoster()
	defer roster.Close(context.Background())

	talk := converse.New(weatherModel(), roster, nil)
	turn, err := talk.Ask(context.Background(), canister.Text("What should I wear in Oslo?"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(turn.Text())
	fmt.Println(turn.Exchanges, "exchanges,", turn.Invocations, "invocation,", turn.Reason)
	// Output:
	// It is -4 °C in Oslo: take a warm coat.
	// 2 exchanges, 1 invocation, answered
}

func ExampleConversation_Send() {
	roster := weatherRoster()
	defer roster.Close(context.Background())

	talk := converse.New(weatherModel(), roster, nil)
	for event, err := range talk.Send(context.Background(), canister.Text("What should I wear in Oslo?")) {
		if err != nil {
			log.Fatal(err)
		}
		switch event := event.(type) {
		case converse.TextDelta:
			fmt.Print(event.Text)
		case converse.InvocationCompleted:
			fmt.Println(event.Invocation.Name, event.Invocation.Arguments)
		case converse.TurnCompleted:
			fmt.Println()
		}
	}
	// Output:
	// local__weather {"city":"Oslo"}
	// It is -4 °C in Oslo: take a warm coat.
}

// A conversation is put down after its first step and taken up by another, as
// if in another process.
func ExampleConversation_Continue() {
	ctx := context.Background()
	roster := weatherRoster()
	defer roster.Close(ctx)
	model := weatherModel()

	first := converse.New(model, roster, nil)
	if err := first.Add(ctx, canister.User{Content: canister.Texts("What should I wear in Oslo?")}); err != nil {
		log.Fatal(err)
	}
	for _, err := range first.Step(ctx) {
		if err != nil {
			log.Fatal(err)
		}
	}
	var file bytes.Buffer
	if err := canister.Encode(&file, first.History()...); err != nil {
		log.Fatal(err)
	}

	var history []canister.Canister
	for c, err := range canister.Decode(&file) {
		if err != nil {
			log.Fatal(err)
		}
		history = append(history, c)
	}
	second := converse.New(model, roster, &converse.Options{History: history})
	fmt.Printf("%T\n", second.Next())
	for event, err := range second.Continue(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		if done, ok := event.(converse.TurnCompleted); ok {
			fmt.Println(done.Turn.Text())
		}
	}
	// Output:
	// converse.Invoke
	// It is -4 °C in Oslo: take a warm coat.
}

func ExampleOptions_approve() {
	roster := weatherRoster()
	defer roster.Close(context.Background())

	talk := converse.New(weatherModel(), roster, &converse.Options{
		Approve: func(ctx context.Context, ask converse.Approval) (converse.Decision, error) {
			if ask.Definition.Hints.MayDestroy() {
				return converse.Deny("only tools that destroy nothing may run"), nil
			}
			return converse.Allow(), nil
		},
	})
	for event, err := range talk.Send(context.Background(), canister.Text("What should I wear in Oslo?")) {
		if err != nil {
			log.Fatal(err)
		}
		if done, ok := event.(converse.InvocationCompleted); ok {
			fmt.Println(done.Result.Code, canister.TextOf(done.Result.Content))
		}
	}
	// Output:
	// DENIED The call was denied and not started: only tools that destroy nothing may run
}

// A tool acts for the user whom the program has verified, whatever the model
// says, and there is a record of each attempt.
func ExampleOptions_trusted() {
	user := invoker.NewTrusted[int64]("user_id")
	list, err := invoker.New("list_tasks", "List the tasks.", func(ctx context.Context, _ struct{}) (string, error) {
		id, _ := user.From(ctx)
		return fmt.Sprintf("the tasks of user %d", id), nil
	}, &invoker.Options{Needs: []invoker.Need{user}})
	if err != nil {
		log.Fatal(err)
	}
	roster, err := ensemble.NewRoster(ensemble.Local("tasks", list))
	if err != nil {
		log.Fatal(err)
	}
	defer roster.Close(context.Background())
	model := conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{
			{Name: "tasks__list_tasks", Arguments: `{"user_id": 7}`},
			{Name: "tasks__list_tasks", Arguments: `{}`},
		}},
		conversetest.Line{Text: "You have nothing to do."},
	)

	talk := converse.New(model, roster, &converse.Options{
		Trusted: []invoker.Value{user.Value(42)},
		Audit:   audit.New(printed{}, &audit.Options{Identity: []string{"user_id"}}),
		Limits:  converse.Limits{Parallel: 1},
	})
	if _, err := talk.Ask(context.Background(), canister.Text("What is there to do?")); err != nil {
		log.Fatal(err)
	}
	// Output:
	// user 42 calls list_tasks with {"user_id":7}: INVALID_ARGUMENTS, forged [user_id]
	// user 42 calls list_tasks with {}: OK, forged []
}

// printed is a sink for the example.
type printed struct{}

func (printed) Record(_ context.Context, r *audit.Record) error {
	fmt.Printf("user %s calls %s with %s: %s, forged %v\n", r.Identity["user_id"], r.Tool, r.Arguments, r.Code, r.Forged)
	return nil
}

func ExampleNewTool() {
	roster := weatherRoster()
	defer roster.Close(context.Background())
	model := weatherModel()

	tool, err := agenttool.New(func(ctx context.Context, id string) (*converse.Conversation, error) {
		return converse.New(model, roster, &converse.Options{ID: id}), nil
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tool.Close(context.Background())
	output, err := tool.Invoke(context.Background(), &invoker.Call{
		Arguments: json.RawMessage(`{"message": "What should I wear in Oslo?"}`),
		Progress: func(p invoker.Progress) {
			if p.Message != "" {
				fmt.Println(p.Message)
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	var answer struct{ Conversation, Answer, Reason string }
	if err := json.Unmarshal(output.Content[0].(canister.StructuredContent).JSON, &answer); err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Answer)
	// Output:
	// asking the model
	// calling local__weather
	// local__weather returned
	// asking the model
	// It is -4 °C in Oslo: take a warm coat.
}

// A conversation that outlives its process: whoever has the log carries it on.
func Example_log() {
	ctx := context.Background()
	store := history.NewMemory() // or files.Open, or sqlite.Open
	first := converse.New(conversetest.NewScript(conversetest.Line{Text: "It rains."}), nil, &converse.Options{ID: "talk", Log: store})
	turn, _ := first.Ask(ctx, canister.Text("How is the weather?"))
	fmt.Println(turn.Text())

	// In another process, a week later:
	second := converse.New(conversetest.NewScript(conversetest.Line{Text: "Then take an umbrella."}), nil, &converse.Options{ID: "talk", Log: store})
	turn, _ = second.Ask(ctx, canister.Text("And now?"))
	fmt.Println(turn.Text(), len(second.History()))
	// Output:
	// It rains.
	// Then take an umbrella. 4
}

// A chain asks the next model when one is unavailable.
func ExampleChain() {
	first := conversetest.NewScript(conversetest.Line{Err: &converse.ModelError{Message: "overloaded", Status: 529}})
	second := conversetest.NewScript(conversetest.Line{Text: "Hello."})
	models := converse.Chain(first, second)
	defer models.Close()

	talk := converse.New(models, nil, nil)
	for event, err := range talk.Send(context.Background(), canister.Text("Good morning.")) {
		if err != nil {
			log.Fatal(err)
		}
		switch event := event.(type) {
		case converse.ExchangeMoved:
			fmt.Println("moved:", event.Err)
		case converse.MessageCompleted:
			fmt.Println(canister.TextOf(event.Message.Content))
		}
	}
	// Output:
	// moved: model: overloaded (status 529)
	// Hello.
}
