// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/internal/testing/stage"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/server"
)

// role makes the test binary a server that offers the shop.
const role = "CONSORT_WITNESS_ROLE"

// The tokens of the shop over HTTP, and whose they are.
var tokens = map[string]string{"token-of-ada": "ada", "token-of-bob": "bob"}

func TestMain(m *testing.M) {
	which := os.Getenv(role)
	if which == "" {
		os.Exit(withPrograms(m))
	}
	if err := serveShop(which); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serveShop serves until standard input ends.
func serveShop(which string) error {
	roster, err := ensemble.NewRoster(newShop())
	if err != nil {
		return err
	}
	options := &server.Options{Name: "shop", Version: "1.2.3", Instructions: "Ask for tea."}
	ctx := context.Background()
	if which == "stdio" {
		options.Trusted = []invoker.Value{user.Value("stdio")}
		srv := server.New(roster, options)
		err = srv.Serve(ctx, os.Stdin, os.Stdout)
		return errors.Join(err, srv.Close(ctx), roster.Close(ctx))
	}
	options.Authenticate = authenticate
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	fmt.Printf("http://%s/mcp\n", listener.Addr())
	err = server.New(roster, options).ServeListener(ctx, listener)
	return errors.Join(err, roster.Close(context.WithoutCancel(ctx)))
}

var errToken = errors.New("nobody has this token")

func authenticate(_ context.Context, token string, _ *http.Request) (string, []invoker.Value, error) {
	name, ok := tokens[token]
	if !ok {
		return "", nil, errToken
	}
	return "", []invoker.Value{user.Value(name)}, nil
}

var user = invoker.NewTrusted[string]("user_id")

type nothing struct{}

// newShop is an ensemble with one of everything that a client may want.
func newShop() *ensemble.Ensemble {
	updates := new(local.Updates)
	ended, seen := make(chan struct{}, 1), make(chan struct{}, 1)
	s := stage.New(local.Library{
		Resources: []local.Resource{{
			Resource: ensemble.Resource{URI: "shop://opening-hours", Name: "opening hours", MIME: "text/plain"},
			Read: func(context.Context) ([]canister.ResourceContent, error) {
				return []canister.ResourceContent{{Text: "Nine to five."}}, nil
			},
		}},
		Templates: []local.Template{{
			Template: ensemble.Template{URI: "shop://goods/{name}", Name: "goods", MIME: "text/plain"},
			Read: func(_ context.Context, _ string, variables map[string]string) ([]canister.ResourceContent, error) {
				return []canister.ResourceContent{{Text: "There is " + variables["name"] + "."}}, nil
			},
		}},
		Prompts: []local.Prompt{sell()},
		Updates: updates,
	}, add(), find(), whoami(), askUser(), steps(seen), hasSeen(seen), wait(ended), hasEnded(ended), tool("touch", "Change the opening hours.",
		func(context.Context, nothing) (string, error) {
			updates.Tell("shop://opening-hours")
			return "touched", nil
		}))
	s.AddTool(tool("grow", "Add a tool.", func(context.Context, nothing) (string, error) {
		s.AddTool(tool("grown", "Came later.", func(context.Context, nothing) (string, error) { return "grown", nil }))
		return "There is one more tool.", nil
	}))
	return ensemble.New("shop", s, nil)
}

func tool[In, Out any](name, description string, function func(context.Context, In) (Out, error), needs ...invoker.Need) invoker.Invoker {
	made, err := invoker.New(name, description, function, &invoker.Options{Needs: needs})
	if err != nil {
		panic(err)
	}
	return made
}

type numbers struct {
	A int `json:"a"`
	B int `json:"b"`
}

type sum struct {
	Sum int `json:"sum"`
}

func add() invoker.Invoker {
	return tool("add", "Add two numbers.", func(_ context.Context, n numbers) (sum, error) { return sum{n.A + n.B}, nil })
}

func find() invoker.Invoker {
	return tool("find", "Find an article.", func(_ context.Context, in struct {
		ID string `json:"id"`
	}) (string, error) {
		return "", invoker.Failf(invoker.NotFound, "There is no article %q.", in.ID)
	})
}

func whoami() invoker.Invoker {
	return tool("whoami", "Say who is asking.", func(ctx context.Context, _ nothing) (string, error) {
		name, _ := user.From(ctx)
		return name, nil
	}, user)
}

func askUser() invoker.Invoker {
	return tool("ask", "Ask the person.", func(ctx context.Context, _ nothing) (string, error) {
		result, err := invoker.CallFrom(ctx).Ask(ctx, &invoker.ElicitRequest{
			Message: "Milk?",
			Schema:  json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}`),
		})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s: %v", result.Action, result.Content["answer"]), nil
	})
}

// steps waits for seen to be called: a client on the TypeScript SDK drops a
// report that arrives together with the result.
func steps(seen <-chan struct{}) invoker.Invoker {
	return tool("steps", "Go three steps.", func(ctx context.Context, _ nothing) (string, error) {
		call := invoker.CallFrom(ctx)
		call.Note(invoker.LogEntry{Level: "info", Data: json.RawMessage(`"three steps"`)})
		for i := range 3 {
			call.Report(invoker.Progress{Done: float64(i + 1), Total: 3, Message: fmt.Sprintf("step %d", i+1)})
		}
		return await(ctx, seen, "arrived")
	})
}

func hasSeen(seen chan<- struct{}) invoker.Invoker {
	return tool("seen", "Say that the steps were seen.", func(context.Context, nothing) (string, error) {
		seen <- struct{}{}
		return "seen", nil
	})
}

func await(ctx context.Context, event <-chan struct{}, answer string) (string, error) {
	select {
	case <-event:
		return answer, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// wait runs until it is cancelled, and then says so to hasEnded.
func wait(ended chan<- struct{}) invoker.Invoker {
	return tool("wait", "Wait for ever.", func(ctx context.Context, _ nothing) (string, error) {
		invoker.CallFrom(ctx).Report(invoker.Progress{Done: 1, Message: "waiting"})
		<-ctx.Done()
		ended <- struct{}{}
		return "", ctx.Err()
	})
}

func hasEnded(ended <-chan struct{}) invoker.Invoker {
	return tool("ended", "Wait until a wait was cancelled.", func(ctx context.Context, _ nothing) (string, error) {
		return await(ctx, ended, "its context ended")
	})
}

func sell() local.Prompt {
	return local.Prompt{
		Prompt: ensemble.Prompt{
			Name: "sell", Description: "Sell something.",
			Arguments: []ensemble.PromptArgument{{Name: "goods", Required: true}},
		},
		Get: func(_ context.Context, arguments map[string]string) (*ensemble.Messages, error) {
			return &ensemble.Messages{Messages: []ensemble.PromptMessage{
				{Role: "user", Content: canister.Texts("Sell me some " + arguments["goods"] + ".")},
			}}, nil
		},
		Complete: func(_ context.Context, request *ensemble.CompletionRequest) (*ensemble.Completion, error) {
			found := &ensemble.Completion{}
			for _, goods := range []string{"coffee", "cocoa", "tea"} {
				if strings.HasPrefix(goods, request.Value) {
					found.Values = append(found.Values, goods)
				}
			}
			return found, nil
		},
	}
}
