// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
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
	compiling.Lock()
	schema, err := compiler().Compile("https://example.com/openapi.json#" + pointer)
	compiling.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	form, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err == nil {
		err = schema.Validate(form)
	}
	if err != nil {
		t.Errorf("%s is not as described: %v\n%s", pointer, err, text)
	}
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
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	pointer := fmt.Sprintf("/paths/%s/%s/responses/%s", escape.Replace(path), strings.ToLower(method), status)
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
