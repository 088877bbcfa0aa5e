// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/server"
)

// fullMeta is a _meta whose bytes show whether it was decoded on the way: the order
// of its members, a number that no float64 holds, and characters that
// encoding/json would escape.
const fullMeta = `"_meta":{"ui":{"csp":{"connectDomains":["https://tile.example"],"resourceDomains":[]},` +
	`"permissions":{"clipboardWrite":{}}},"b":90071992547409931,"a":"<&>"}`

// The members that several objects of the schema share.
const (
	icons       = `"icons":[{"src":"https://x.example/i.png","mimeType":"image/png","sizes":["48x48"],"theme":"dark"}]`
	annotations = `"annotations":{"audience":["user","assistant"],"priority":0.25,"lastModified":"2026-01-12T15:00:58Z"}`
	vendor      = `"x-vendor":{"z":1,"y":2}`
)

// maximal are the objects of the schema (MCP 2025-11-25 and 2026-07-28) with all
// their members, and one that the schema does not know, by the method whose
// result has them and the member of it.
var maximal = map[string]struct{ params, name, member, object string }{
	"tools/list": {``, ``, "tools",
		`[{"name":"everything","title":"Title","description":"  Says much.\n","inputSchema":{"type":"object",` +
			`"properties":{"b":{"type":"string"},"a":{"type":"integer"}}},` +
			`"outputSchema":{"type":"object"},"annotations":{"title":"Annotated","readOnlyHint":false,"destructiveHint":false,` +
			`"idempotentHint":true,"openWorldHint":true},` + icons + `,` + fullMeta + `,` + vendor + `},` +
			`{"name":"plain","inputSchema":{"type":"object"}},` +
			`{"name":"titled","inputSchema":{"type":"object"},"annotations":{"title":"Only here"}},` +
			`{"name":"whole","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]`},
	"resources/list": {``, ``, "resources",
		`[{"uri":"test://a","name":"a","title":"A","description":"An a.","mimeType":"text/plain","size":12,` + annotations +
			`,` + icons + `,` + fullMeta + `,` + vendor + `}]`},
	"resources/templates/list": {``, ``, "resourceTemplates",
		`[{"uriTemplate":"test://t/{x}","name":"t","title":"T","description":"A t.","mimeType":"text/plain",` + annotations +
			`,` + icons + `,` + fullMeta + `,` + vendor + `}]`},
	"prompts/list": {``, ``, "prompts",
		`[{"name":"p","title":"P","description":"A p.","arguments":[{"name":"x","title":"X","description":"An x.","required":true,` + vendor +
			`},{"name":"y"}],` + icons + `,` + fullMeta + `,` + vendor + `}]`},
	"resources/read": {`"uri":"test://a"`, `test://a`, "contents",
		`[{"uri":"test://a","mimeType":"text/html;profile=mcp-app","text":"<b>",` + fullMeta + `,` + vendor +
			`},{"uri":"test://a","mimeType":"image/png","blob":"AQ==",` + fullMeta + `}]`},
	"prompts/get": {`"name":"p","arguments":{"x":"1"}`, `p`, "messages",
		`[{"role":"user","content":{"type":"text","text":"t",` + annotations + `,` + fullMeta + `},` + vendor + `},` +
			`{"role":"assistant","content":{"type":"resource","resource":{"uri":"test://a","text":"t",` + fullMeta + `},` +
			annotations + `,` + fullMeta + `}}]`},
	"tools/call": {`"name":"whole","arguments":{}`, `whole`, "content",
		`[{"type":"text","text":"t",` + annotations + `,` + fullMeta + `},` +
			`{"type":"image","data":"AQ==","mimeType":"image/png",` + annotations + `,` + fullMeta + `},` +
			`{"type":"audio","data":"AQ==","mimeType":"audio/wav",` + annotations + `,` + fullMeta + `},` +
			`{"type":"resource_link","uri":"test://a","name":"a","title":"A","description":"An a.","mimeType":"text/plain","size":12,` + annotations + `,` +
			icons + `,` + fullMeta + `},` +
			`{"type":"resource","resource":{"uri":"test://a","mimeType":"text/plain","text":"t",` + fullMeta + `},` + annotations + `,` + fullMeta + `},` +
			`{"type":"hologram",` + fullMeta + `}]`},
	"completion/complete": {`"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"x","value":""}`, ``, "completion",
		`{"values":["one"],"total":2,"hasMore":true,` + vendor + `}`},
}

// answerMaximal answers a request with its objects in a result that has a _meta.
func answerMaximal(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
	const what = `"capabilities":{"tools":{},"resources":{},"prompts":{},"completions":{},"logging":{}},"instructions":"Use wisely."`
	const info = `{"name":"behind","title":"Behind","version":"7","description":"A server.","websiteUrl":"https://x.example/",` + icons + `}`
	switch m.Method {
	case "initialize":
		mcptest.Reply(w, m, `{"protocolVersion":"2025-11-25",`+what+`,"serverInfo":`+info+`}`)
	case "server/discover":
		mcptest.Reply(w, m, `{"resultType":"complete","supportedVersions":["2026-07-28"],`+what+`,"_meta":{"io.modelcontextprotocol/serverInfo":`+info+`}}`)
	default:
		answer, ok := maximal[m.Method]
		if ok {
			mcptest.Reply(w, m, `{"resultType":"complete","`+answer.member+`":`+answer.object+`,`+fullMeta+`}`)
		}
		return ok
	}
	return true
}

// served sends a handwritten request to a server over HTTP.
func served(t *testing.T, url, protocol, method, params, name string) map[string]json.RawMessage {
	t.Helper()
	if protocol == "2026-07-28" {
		params = strings.TrimPrefix(params+","+rawMeta(""), ",")
	}
	_, body := post(t, url, method, params, http.Header{"Mcp-Protocol-Version": {protocol}, "Mcp-Name": {name}})
	for line := range strings.Lines(body) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			body = data
		}
	}
	var answer struct{ Result map[string]json.RawMessage }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Result == nil {
		t.Fatalf("%s: %s, %v", method, body, err)
	}
	return answer.Result
}

// exactly decodes JSON without a loss in its numbers.
func exactly(t *testing.T, text []byte) (value any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

// What a server says reaches the clients of a gateway with all its members,
// whichever protocol is spoken on either side.
func TestGatewayKeepsEveryMember(t *testing.T) {
	for _, behind := range mcptest.Protocols {
		s := mcptest.NewScripted(t, answerMaximal)
		source := mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{Protocol: behind}})
		roster := mcptest.Roster(t, ensemble.New("behind", source, nil))
		gateway := server.New(roster, &server.Options{OwnNames: true, Stateless: true})
		t.Cleanup(func() { _ = gateway.Close(context.Background()) })
		listener := httptest.NewServer(gateway.Handler())
		t.Cleanup(listener.Close)
		for _, protocol := range mcptest.Protocols {
			for method, sent := range maximal {
				t.Run(behind+"/"+protocol+"/"+method, func(t *testing.T) {
					result := served(t, listener.URL, protocol, method, sent.params, sent.name)
					got := result[sent.member]
					if !reflect.DeepEqual(exactly(t, got), exactly(t, []byte(sent.object))) {
						t.Errorf("got  %s\nwant %s", got, sent.object)
					}
					if want := strings.Count(sent.object, fullMeta); strings.Count(string(got), fullMeta) != want {
						t.Errorf("the bytes of a _meta changed: %s", got)
					}
					if strings.HasSuffix(method, "/list") {
						return // a list is combined from several servers, whose _meta cannot be part of it
					}
					if said := string(result["_meta"]); !strings.Contains(said, `"a":"<&>","b":90071992547409931`) ||
						!strings.Contains(said, `"permissions":{"clipboardWrite":{}}`) {
						t.Errorf("the result has the _meta %s", said)
					}
				})
			}
		}
	}
}
