// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/converse/httpapi"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// described is the description that the package has.
var described = sync.OnceValue(func() map[string]any {
	var document map[string]any
	if err := json.Unmarshal([]byte(httpapi.OpenAPI), &document); err != nil {
		panic(err)
	}
	return document
})

// member returns a member of a form by its keys, following references to responses.
func member(form any, keys ...string) any {
	for _, key := range keys {
		object, _ := form.(map[string]any)
		form = object[key]
		if reference, is := form.(map[string]any)["$ref"].(string); is {
			form = member(described(), strings.Split(strings.TrimPrefix(reference, "#/"), "/")...)
		}
	}
	return form
}

// pathOf returns the path of the description that a request matches.
func pathOf(target string) string {
	u, _ := url.Parse(target)
	parts := strings.Split(u.Path, "/")
	for path := range described()["paths"].(map[string]any) {
		if slices.EqualFunc(parts, strings.Split(path, "/"), func(part, pattern string) bool {
			return part == pattern || strings.HasPrefix(pattern, "{")
		}) && (strings.Contains(path, "{") || path == u.Path) {
			return path
		}
	}
	return ""
}

// compiler has the schemas of the description.
var compiler = sync.OnceValue(func() *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(httpapi.OpenAPI))
	if err == nil {
		err = c.AddResource("https://example.com/openapi.json", document)
	}
	if err != nil {
		panic(err)
	}
	return c
})

var compiling sync.Mutex

// checkSchema checks a form against the schema at a JSON pointer of the description.
func checkSchema(t *testing.T, pointer, text string) {
	t.Helper()
	if err := asDescribed(pointer, text); err != nil {
		t.Error(err)
	}
}

// asDescribed returns why a form is not as the schema at a JSON pointer of the description says.
func asDescribed(pointer, text string) error {
	compiling.Lock()
	schema, err := compiler().Compile("https://example.com/openapi.json#" + pointer)
	compiling.Unlock()
	if err != nil {
		return err
	}
	form, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err == nil {
		err = schema.Validate(form)
	}
	if err != nil {
		return fmt.Errorf("%s is not as described: %w\n%s", pointer, err, text)
	}
	return nil
}

// escape escapes a key in a JSON pointer.
var escape = strings.NewReplacer("~", "~0", "/", "~1").Replace

// checkEvent returns why an event of the stream that answers a request is not as described: x-events
// of the description has the schemas of the data by the names of the events, "message" if an event
// has none, and "*" for all.
func checkEvent(r *http.Request, e streamed) error {
	method, path := strings.ToLower(r.Method), pathOf(r.URL.Path)
	schemas, _ := member(described(), "paths", path, method, "responses", "200", "content", "text/event-stream", "x-events").(map[string]any)
	name := cmp.Or(e.name, "message")
	if schemas["*"] != nil {
		name = "*"
	}
	if path == "/v1/chat/completions" && e.data == "[DONE]" {
		return nil
	}
	if schemas[name] == nil {
		return fmt.Errorf("%s %s: the event %q is not described", r.Method, path, name)
	}
	return asDescribed(fmt.Sprintf("/paths/%s/%s/responses/200/content/text~1event-stream/x-events/%s", escape(path), method, name), e.data)
}

// seen are the operations and statuses that tests have received.
var seen sync.Map

// checkResponse checks a response against the description.
func checkResponse(t *testing.T, method, target string, a answer) {
	t.Helper()
	path := pathOf(target)
	if path == "" || a.status == http.StatusMethodNotAllowed {
		checkSchema(t, "/components/schemas/Error", a.text)
		return
	}
	responses := member(described(), "paths", path, strings.ToLower(method), "responses").(map[string]any)
	status := strconv.Itoa(a.status)
	response, is := responses[status].(map[string]any)
	if !is {
		t.Errorf("%s %s: the status %s is not described", method, path, status)
		return
	}
	seen.Store(method+" "+path, true)
	pointer := fmt.Sprintf("/paths/%s/%s/responses/%s", escape(path), strings.ToLower(method), status)
	if reference, is := response["$ref"].(string); is {
		pointer, response = strings.TrimPrefix(reference, "#"), member(responses, status).(map[string]any)
	}
	content, _ := response["content"].(map[string]any)
	kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	if _, is := content[kind]; !is && len(content)+len(a.text) > 0 {
		t.Errorf("%s %s: status %s: the type %q is not described", method, path, status, kind)
		return
	}
	if kind == "application/json" {
		checkSchema(t, pointer+"/content/application~1json/schema", a.text)
	}
}

// TestDescription: each route is described, and nothing else is.
func TestDescription(t *testing.T) {
	s := serve(t, echo, nil, nil)
	if a := s.want(http.StatusOK, "GET", "/api/openapi.json", nil); a.form["openapi"] != "3.1.0" {
		t.Errorf("got %s", a.text)
	}
	var operations []string
	for path, item := range described()["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			if method != "parameters" {
				operations = append(operations, strings.ToUpper(method)+" "+path)
			}
		}
	}
	slices.Sort(operations)
	if routes := httpapi.Routes(); !slices.Equal(operations, routes) {
		t.Errorf("described: %q\n   routes: %q", operations, routes)
	}
}
