// SPDX-License-Identifier: Apache-2.0

package invoker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

// A tool acts on behalf of a user. The program sets the user, and a model that sets
// another one is refused.
func Example_trusted() {
	var User = invoker.NewTrusted[int64]("user_id")
	type Task struct {
		Title string `json:"title" minLength:"1" maxLength:"500"`
	}
	add, err := invoker.New("add_task", "Add a task.",
		func(ctx context.Context, t Task) (string, error) {
			user, _ := User.From(ctx)
			return fmt.Sprintf("added %q for user %d", t.Title, user), nil
		}, &invoker.Options{Needs: []invoker.Need{User}})
	if err != nil {
		log.Fatal(err)
	}
	call := func(ctx context.Context, arguments string) {
		output, err := add.Invoke(ctx, &invoker.Call{Arguments: json.RawMessage(arguments)})
		if err == nil {
			fmt.Println(canister.TextOf(output.Content))
			return
		}
		var forged *invoker.Forged
		fmt.Println(invoker.AsFailure(err).Code, errors.As(err, &forged))
	}

	ctx := context.Background()
	call(ctx, `{"title":"Buy milk"}`)
	ctx = invoker.WithTrusted(ctx, User.Value(42)) // once, where the user was verified
	call(ctx, `{"title":"Buy milk"}`)
	call(ctx, `{"title":"Buy milk","User_ID":7}`)
	// Output:
	// UNAUTHORIZED false
	// added "Buy milk" for user 42
	// INVALID_ARGUMENTS true
}

// A tool from elsewhere takes the identity as an argument. The model does not
// see it.
func ExampleFill() {
	remote, err := invoker.Raw(invoker.Definition{
		Name: "list_orders",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"customer":{"type":"integer"},"year":{"type":"integer"}},"required":["customer"]}`),
	}, func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
		return invoker.Output{Content: canister.Texts(string(call.Arguments))}, nil
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	filled, err := invoker.Fill(remote, map[string]string{"customer": "user_id"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(filled.Definition().InputSchema))

	ctx := invoker.WithTrusted(context.Background(), invoker.NewTrusted[int64]("user_id").Value(42))
	output, err := filled.Invoke(ctx, &invoker.Call{Arguments: json.RawMessage(`{"year":2026}`)})
	fmt.Println(canister.TextOf(output.Content), err)
	// Output:
	// {"type":"object","properties":{"year":{"type":"integer"}}}
	// {"customer":42,"year":2026} <nil>
}

// Library is shared by the tools of ExampleMethods.
type Library struct {
	mu     sync.Mutex // calls may be concurrent
	onLoan map[string]bool
}

type Loan struct {
	Title string `json:"title" description:"title of the book"`
}

func (l *Library) LendBook(_ context.Context, in Loan) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.onLoan[in.Title] {
		return "", invoker.Failf(invoker.Conflict, "%s is on loan already.", in.Title)
	}
	l.onLoan[in.Title] = true
	return "Lent.", nil
}

func (l *Library) CountLoans(context.Context) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.onLoan), nil
}

func ExampleMethods() {
	tools, err := invoker.Methods(&Library{onLoan: map[string]bool{}}, map[string]invoker.Method{
		"LendBook":   {Description: "Lend a book."},
		"CountLoans": {Description: "Count the books on loan.", Options: invoker.Options{Hints: invoker.Hints{ReadOnly: true}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, tool := range tools {
		fmt.Println(tool.Definition().Name)
	}
	lend := tools[1]
	for range 2 {
		output, err := lend.Invoke(context.Background(), &invoker.Call{Arguments: json.RawMessage(`{"title":"Emma"}`)})
		fmt.Println(canister.TextOf(output.Content), err)
	}
	// Output:
	// count_loans
	// lend_book
	// Lent. <nil>
	//  CONFLICT: Emma is on loan already.
}

// Struct tags constrain the values of a field; omitted fields have their defaults.
func Example_tags() {
	type Drink struct {
		Kind  string   `json:"kind" enum:"tea,coffee" description:"what to pour"`
		Cups  int      `json:"cups" minimum:"1" maximum:"9" default:"1"`
		With  []string `json:"with,omitempty" enum:"milk,lemon" uniqueItems:"true"`
		Email string   `json:"email,omitempty" format:"email"`
	}
	pour, err := invoker.New("pour", "Pour a drink.",
		func(_ context.Context, d Drink) (string, error) { return fmt.Sprintf("%d × %s", d.Cups, d.Kind), nil }, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, arguments := range []string{`{"kind":"tea"}`, `{"kind":"beer","cups":12,"with":["gin"],"email":"me"}`} {
		output, err := pour.Invoke(context.Background(), &invoker.Call{Arguments: json.RawMessage(arguments)})
		if failure := invoker.AsFailure(err); failure != nil {
			fmt.Println(failure.Message)
			continue
		}
		fmt.Println(canister.TextOf(output.Content))
	}
	// Output:
	// 1 × tea
	// The arguments do not fit the tool's input schema:
	// /cups: 12 is greater than the maximum 9
	// /email: "me" is not in the format email, which looks like ada@example.org
	// /kind: "beer" is not one of "tea", "coffee"
	// /with/0: "gin" is not one of "milk", "lemon"
}

// A slow tool reports its progress, and shows partial results.
func Example_streaming() {
	type Query struct {
		Words []string `json:"words"`
	}
	search, err := invoker.New("search", "Search the archive.",
		func(ctx context.Context, q Query) (string, error) {
			call := invoker.CallFrom(ctx)
			for i, word := range q.Words {
				if err := ctx.Err(); err != nil {
					return "", err
				}
				call.Report(invoker.Progress{
					Done: float64(i + 1), Total: float64(len(q.Words)), Message: "searching",
					Partial: canister.Texts("found " + word),
				})
			}
			return fmt.Sprintf("found %d", len(q.Words)), nil // the result says all of it
		}, nil)
	if err != nil {
		log.Fatal(err)
	}
	output, err := search.Invoke(context.Background(), &invoker.Call{
		Arguments: json.RawMessage(`{"words":["oak","elm"]}`),
		Progress: func(p invoker.Progress) {
			fmt.Printf("%v of %v: %s\n", p.Done, p.Total, canister.TextOf(p.Partial))
		},
	})
	fmt.Println(canister.TextOf(output.Content), err)
	// Output:
	// 1 of 2: found oak
	// 2 of 2: found elm
	// found 2 <nil>
}

func ExampleAskFor() {
	type Confirmation struct {
		Sure bool `json:"sure" description:"really delete all of them"`
	}
	clear, err := invoker.New("clear", "Delete all tasks.",
		func(ctx context.Context, _ struct{}) (string, error) {
			answer, err := invoker.AskFor[Confirmation](ctx, "Delete 40 tasks?")
			switch {
			case errors.Is(err, invoker.ErrDismissed):
				return "Nothing was deleted; ask again later.", nil
			case err != nil:
				return "", err
			case !answer.Sure:
				return "Nothing was deleted.", nil
			}
			return "All tasks were deleted.", nil
		}, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, result := range []*invoker.ElicitResult{
		{Action: invoker.Accept, Content: map[string]any{"sure": true}},
		{Action: invoker.Decline},
		{Action: invoker.Dismiss},
	} {
		output, err := clear.Invoke(context.Background(), &invoker.Call{
			Person: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) { return result, nil },
		})
		fmt.Println(canister.TextOf(output.Content), err)
	}
	// Output:
	// All tasks were deleted. <nil>
	//  DENIED: The person was asked and declined.
	// Nothing was deleted; ask again later. <nil>
}

func ExampleSampleText() {
	title, err := invoker.New("title", "Find a title for a text.",
		func(ctx context.Context, in struct {
			Text string `json:"text"`
		}) (string, error) {
			invoker.Notef(ctx, "info", "a text of %d bytes", len(in.Text))
			return invoker.SampleText(ctx, "Answer with a title and nothing else.", in.Text)
		}, nil)
	if err != nil {
		log.Fatal(err)
	}
	output, err := title.Invoke(context.Background(), &invoker.Call{
		Arguments: json.RawMessage(`{"text":"Call me Ishmael."}`),
		Model: func(_ context.Context, r *invoker.SampleRequest) (*invoker.SampleResult, error) {
			return &invoker.SampleResult{Text: "The Whale"}, nil
		},
		Log: func(entry invoker.LogEntry) { fmt.Println(entry.Level, string(entry.Data)) },
	})
	fmt.Println(canister.TextOf(output.Content), err)
	// Output:
	// info "a text of 16 bytes"
	// The Whale <nil>
}

func ExampleFailure_Structured() {
	failure := invoker.UnavailableFor(2*time.Second, "The database is busy.")
	fmt.Println(string(failure.Structured().JSON))

	back, ok := invoker.FailureFrom(failure.Structured().JSON)
	fmt.Println(back, back.RetryAfter, ok)
	fmt.Println(string(invoker.Invalid("/title", "The title is blank.").Structured().JSON))
	// Output:
	// {"error":{"code":"UNAVAILABLE","message":"The database is busy.","retryable":true,"retry_after_ms":2000}}
	// UNAVAILABLE: The database is busy. 2s true
	// {"error":{"code":"INVALID_ARGUMENTS","message":"The title is blank.","retryable":false,"pointer":"/title"}}
}
