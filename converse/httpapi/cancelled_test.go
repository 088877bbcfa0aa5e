// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestCancelledStreams: a turn that is cancelled while its answer is streamed ends its stream as
// cancelled, and not with an error, and the note for the model is not an answer.
func TestCancelledStreams(t *testing.T) {
	for path, c := range map[string]struct {
		body object
		last func(last object) bool
	}{
		"/v1/chat/completions": {object{"messages": []object{user("block")}, "stream": true}, func(last object) bool {
			choices, is := last["choices"].([]any)
			return is && choices[0].(object)["finish_reason"] == "stop"
		}},
		"/v1/responses": {object{"input": "block", "stream": true}, func(last object) bool {
			return last["type"] == "response.incomplete" && last["response"].(object)["status"] == "cancelled"
		}},
		"/agui": {object{"threadId": "t", "runId": "r", "messages": []object{{"id": "m", "role": "user", "content": "block"}}}, func(last object) bool {
			return last["type"] == "RUN_FINISHED" && last["outcome"].(object)["type"] == "cancelled"
		}},
	} {
		s := serve(t, echo, nil, nil)
		response := s.request("POST", path, c.body)
		id, all, last := response.Header.Get("Consort-Conversation"), "", object{}
		err := readStream(response, func(e streamed) bool {
			if all += e.data; strings.Contains(e.data, "one ") && len(last) == 0 {
				s.want(http.StatusNoContent, "POST", "/api/conversations/"+id+"/cancel", nil)
			}
			if strings.Contains(e.data, "one ") || len(last) > 0 {
				if e.data == "[DONE]" {
					return true
				}
				last = object{}
				if err := json.Unmarshal([]byte(e.data), &last); err != nil {
					t.Fatal(err)
				}
			}
			return true
		})
		if err != nil || !c.last(last) || strings.Contains(all, "was cancelled by") {
			t.Errorf("%s: %v, the stream is %s", path, err, all)
		}
	}
}
