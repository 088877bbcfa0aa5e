// SPDX-License-Identifier: Apache-2.0

package openaiserver_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// ask sends one request; a program would use a real client.
func ask(base, body string) string {
	response, err := http.Post(base+"/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return string(text)
}

func Example() {
	server, err := openaiserver.Start(openaiserver.Script{Steps: []openaiserver.Step{
		{
			Expect: openaiserver.Expect{LastRole: "user", Contains: []string{"Oslo"}},
			Reply:  openaiserver.Message{Text: "It rains."},
		},
	}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	fmt.Println(strings.Contains(ask(server.URL(), `{"model":"m","messages":[{"role":"user","content":"Oslo?"}]}`), "It rains."))
	ask(server.URL(), `{"model":"m","messages":[{"role":"user","content":"Bergen?"}]}`)
	fmt.Println(server.Faults()[0])
	// Output:
	// true
	// the request departs from the script: step 0: expected "Oslo" in the new messages, got "Bergen?"
}

func ExampleOddities() {
	server, err := openaiserver.Start(openaiserver.Script{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	for _, o := range openaiserver.Oddities() {
		if o.Name == "finish-missing" {
			base := openaiserver.OddityURL(server.URL(), o.Name)
			got := ask(base, `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`)
			fmt.Println(got == string(o.Replay.Body()), o.Want.Text)
		}
	}
	// Output: true Hello there.
}
