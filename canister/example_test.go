// SPDX-License-Identifier: Apache-2.0

package canister_test

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/consort-go/consort/canister"
)

func Example() {
	history := []canister.Canister{
		canister.Supervisor{Content: canister.Texts("Answer in one sentence.")},
		canister.User{Content: canister.Texts("What should I wear in Oslo?")},
	}
	for _, c := range history {
		switch c := c.(type) {
		case canister.User:
			fmt.Println("a person says:", canister.TextOf(c.Content))
		case canister.Supervisor:
			fmt.Println("the rule is:", canister.TextOf(c.Content))
		default:
			fmt.Println("something else:", c.Kind())
		}
	}
	// Output:
	// the rule is: Answer in one sentence.
	// a person says: What should I wear in Oslo?
}

func ExampleMarshal() {
	line, err := canister.Marshal(canister.Invocation{
		Head:      canister.Head{ID: "c3"},
		Message:   "c2",
		CallID:    "call_1",
		Name:      "local__weather",
		Arguments: `{"place": "Oslo"}`,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(line))
	// Output:
	// {"kind":"invocation","id":"c3","message":"c2","call_id":"call_1","name":"local__weather","arguments":"{\"place\": \"Oslo\"}"}
}

func ExampleUnmarshal() {
	c, err := canister.Unmarshal([]byte(`{"kind":"user","id":"c1","content":[{"type":"text","text":"Hello."}],"mood":"sunny"}`))
	if err != nil {
		log.Fatal(err)
	}
	user := c.(canister.User)
	fmt.Println(canister.TextOf(user.Content))
	fmt.Println("unknown to this version:", string(user.Unknown["mood"]))
	// Output:
	// Hello.
	// unknown to this version: "sunny"
}

func ExampleEncode() {
	err := canister.Encode(os.Stdout,
		canister.User{Head: canister.Head{ID: "c1"}, Content: canister.Texts("Hello.")},
		canister.Assistant{Head: canister.Head{ID: "c2"}, Content: canister.Texts("Good day."), Finish: canister.FinishStop},
	)
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// {"kind":"user","id":"c1","content":[{"type":"text","text":"Hello."}]}
	// {"kind":"assistant","id":"c2","content":[{"type":"text","text":"Good day."}],"finish":"stop"}
}

func ExampleDecode() {
	lines := strings.NewReader(`{"kind":"user","id":"c1"}
{"kind":"assistant","id":"c2"}
{"kind":"oracle","id":"c3"}
`)
	for c, err := range canister.Decode(lines) {
		if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Println(c.Kind(), c.Header().ID)
	}
	// Output:
	// user c1
	// assistant c2
	// canister: line 3: unknown kind "oracle": want user, assistant, supervisor, document, invocation, result, intent, wait or answer
}

func ExamplePending() {
	history := []canister.Canister{
		canister.Assistant{Head: canister.Head{ID: "c1"}},
		canister.Invocation{Head: canister.Head{ID: "c2"}, Message: "c1", CallID: "call_1"},
		canister.Invocation{Head: canister.Head{ID: "c3"}, Message: "c1", CallID: "call_2"},
		canister.Result{Head: canister.Head{ID: "c4"}, Invocation: "c2"},
	}
	for _, call := range canister.Pending(history) {
		fmt.Println("still to do:", call.ID)
	}
	// Output:
	// still to do: c3
}

func ExampleWithHead() {
	var c canister.Canister = canister.User{Content: canister.Texts("Hello.")}
	head := c.Header()
	head.ID = "c1"
	head.Metadata = canister.Fields{"example.com/page": json.RawMessage(`7`)}
	c = canister.WithHead(c, head)
	fmt.Println(c.Header().ID, string(c.Header().Metadata["example.com/page"]))
	// Output:
	// c1 7
}

func ExampleUsage_Add() {
	sum := canister.Usage{Input: 212, Output: 31}.Add(canister.Usage{Input: 260, Cached: 192, Output: 12, Reasoning: 5})
	fmt.Printf("%+v, %d in all\n", sum, sum.Total())
	// Output:
	// {Input:472 Cached:192 CacheWritten:0 Output:43 Reasoning:5 Context:0}, 515 in all
}

func ExampleMessages() {
	history := []canister.Canister{
		canister.Assistant{Head: canister.Head{ID: "c1"}},
		canister.Invocation{Head: canister.Head{ID: "c2"}, Message: "c1", CallID: "call_1"},
		canister.Wait{Head: canister.Head{ID: "c3"}, For: canister.WaitApproval, Invocation: "c2"},
		canister.Answer{Head: canister.Head{ID: "c4"}, Wait: "c3", Verdict: canister.VerdictAllow, By: "ada"},
		canister.Intent{Head: canister.Head{ID: "c5"}, Invocation: "c2", Attempt: 1, Key: "c2", Wait: "c3"},
		canister.Result{Head: canister.Head{ID: "c6"}, Invocation: "c2"},
	}
	for _, c := range canister.Messages(history) {
		fmt.Println(c.Kind())
	}
	// Output:
	// assistant
	// invocation
	// result
}
