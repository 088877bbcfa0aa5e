// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/config/values"
)

// planted is a configuration with a secret in each place that can hold one:
// as it stands, and through a variable.
const planted = `
import = ["m.json"]
[model]
name = "gpt-${SECRET}"
base_url = "https://${SECRET}.example/v1?key=secret-111"
api_key = "secret-222"
headers = {A = "secret-333", B = "Bearer ${SECRET}", C = "env:SECRET"}
organization = "secret-444"
project = "${SECRET}"
extra_body = {a = "secret-555", b = "env:SECRET", c = {d = ["${SECRET}"]}}
response_format.schema = {a = "${SECRET}"}
[mcp.a]
command = ["x", "--key=${SECRET}", "${NONE:-secret-666}"]
environment = {A = "secret-777", B = "env:SECRET"}
directory = "/${SECRET}"
settings = {a = "secret-888", b = "env:SECRET"}
[mcp.b]
url = "https://me:secret-999@${SECRET}.example/mcp?key=secret-112"
headers = {A = "secret-113"}
[grpc.g]
address = "${SECRET}:1"
token = "secret-124"
metadata = {a = "secret-125", b = "env:SECRET"}
tls = {ca = "/${SECRET}"}
settings = {a = "secret-126"}
[grpc.h]
dapr = "${SECRET}"
[trusted]
a = "secret-117"
b = {value = "env:SECRET", secret = true}
c = {value = '["secret-118"]', json = true}
[audit]
file = "/${SECRET}"
[history]
path = "/${SECRET}"
[serve]
http = "${SECRET}:0"
[[serve.clients]]
token = "secret-119-0123456789"
trusted = {a = "secret-120", b = {value = "${SECRET}"}}
[[serve.clients]]
token = "env:SECRET"
[serve.resource_metadata]
resource = "https://${SECRET}.example?x=secret-121"
authorization_servers = ["https://${SECRET}.example?x=secret-122"]
`

const plantedJSON = `{"mcpServers": {
	"c": {"command": "${SECRET}", "args": ["${SECRET}"], "env": {"A": "secret-114"}, "cwd": "${SECRET}", "timeout": "secret-115"},
	"d": {"url": "https://${SECRET}.example", "headers": {"A": "secret-116"}}}}`

func secretly(name string) (string, bool) { return "secret-000-000000", name != "NONE" }

func TestSecretsAreNotShown(t *testing.T) {
	c, err := config.Parse("consort.toml", []byte(planted), &config.Options{
		Lookup:   secretly,
		ReadFile: func(string) ([]byte, error) { return []byte(plantedJSON), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	shown := []any{c, *c, c.Model, *c.Model, c.Model.APIKey, &c.Model.APIKey, c.Model.Headers, c.Model.ExtraBody,
		*c.Model.ResponseFormat, c.Ignored[0], *c.Ignored[0], struct{ hidden values.Value }{c.Model.APIKey},
		struct{ hidden values.Table }{c.Model.ExtraBody},
		c.Trusted, c.Trusted["a"], *c.Audit, *c.History, *c.Serve, c.Serve.Clients[0], &c.Serve.Clients[0].Token, *c.Serve.ResourceMetadata}
	for _, s := range c.MCP {
		shown = append(shown, s, *s, s.Command, s.Environment, s.Settings, s.URL)
	}
	for _, s := range c.GRPC {
		shown = append(shown, s, *s, s.Token, s.Metadata, s.Address, s.Dapr, s.TLS, &s.Supervision)
	}
	for _, v := range shown {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%10v"} {
			if text := fmt.Sprintf(verb, v); strings.Contains(text, "secret-") || strings.Contains(text, fmt.Sprintf("%x", "secret-")) {
				t.Errorf("%s of %T shows a secret: %s", verb, v, text)
			}
		}
		text, err := json.Marshal(v)
		if err != nil || strings.Contains(string(text), "secret-") {
			t.Errorf("the JSON of %T shows a secret, or failed: %v: %s", v, err, text)
		}
	}
	if got := c.Model.ExtraBody.Reveal()["c"]; !reflect.DeepEqual(got, map[string]any{"d": []any{"secret-000-000000"}}) {
		t.Errorf("Reveal gives %v", got)
	}
}

// TestSecretsAreNotInErrors breaks each line of the planted configuration in
// several ways.
func TestSecretsAreNotInErrors(t *testing.T) {
	broken := 0
	check := func(text, foreign string) {
		t.Helper()
		_, err := config.Parse("consort.toml", []byte(text), &config.Options{
			Lookup:   func(name string) (string, bool) { return "secret-000\n", name != "NONE" },
			ReadFile: func(string) ([]byte, error) { return []byte(foreign), nil },
		})
		if err != nil {
			broken++
			for _, form := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
				if strings.Contains(form, "secret-") {
					t.Errorf("the error shows a secret: %s\nof\n%s", form, text)
				}
			}
		}
	}
	for i := range planted {
		check(planted[:i]+planted[i+1:], plantedJSON)
		check(planted[:i]+"\x00"+planted[i:], plantedJSON)
	}
	for i := range plantedJSON {
		check("import = ['m.json']", plantedJSON[:i]+plantedJSON[i+1:])
		check("import = ['m.json']", plantedJSON[:i]+plantedJSON[i:i+1]+plantedJSON[i:])
	}
	if broken < len(planted)/2 {
		t.Errorf("only %d of the texts were broken", broken)
	}
}

func TestExpansion(t *testing.T) {
	tests := []struct{ written, text, shown string }{
		{"plain", "plain", "plain"},
		{"", "", ""},
		{"$HOST $", "$HOST $", "$HOST $"},
		{"${HOST}", "example.host-5554", "${HOST}"},
		{"a ${HOST} b ${HOST}", "a example.host-5554 b example.host-5554", "a ${HOST} b ${HOST}"},
		{"${NO:-x:-y}", "x:-y", "${NO}"},
		{"${NO:-}", "", "${NO}"},
		{"${EMPTY:-x}", "x", "${EMPTY}"},
		{"${EMPTY}", "", "${EMPTY}"},
		{"$${HOST}", "${HOST}", "${HOST}"},
		{"$$${HOST}", "$${HOST}", "$${HOST}"},
		{"$$ }{", "$$ }{", "$$ }{"},
		{"env:HOST", "example.host-5554", "env:HOST"},
		{" env:HOST", " env:HOST", " env:HOST"},
		{"${NO:-env:HOST}", "env:HOST", "${NO}"},
	}
	for _, test := range tests {
		c, err := parse("mcp.a.command = ['x', '"+test.written+"']", nil)
		if err != nil {
			t.Errorf("%q: %v", test.written, err)
			continue
		}
		if v := c.MCP["a"].Command[1]; v.Reveal() != test.text || v.String() != test.shown {
			t.Errorf("%q becomes %q, shown as %q; want %q, shown as %q", test.written, v.Reveal(), v, test.text, test.shown)
		}
	}
}

func TestDisabledServerMayLackVariables(t *testing.T) {
	const server = "url = 'http://${ABSENT}'\nheaders = {A = 'env:ABSENT'}\n"
	c, err := parse("[mcp.a]\n"+server+"enabled = false\n", nil)
	if err != nil || !c.MCP["a"].Disabled {
		t.Errorf("a disabled server: %v", err)
	}
	if _, err := parse("[mcp.a]\nenabled = false\nurl = 'http://${ABSENT}'\n[mcp.b]\n"+server, nil); err == nil || strings.Contains(err.Error(), "mcp.a") {
		t.Errorf("an enabled server after it: %v", err)
	}
}

func TestDefaultKey(t *testing.T) {
	tests := []struct{ text, key string }{
		{"name = 'x'", "sk-openai-5551"},
		{"name = 'x'\nbase_url = 'https://api.openai.com/v1'", "sk-openai-5551"},
		{"name = 'x'\nbase_url = 'https://eu.api.openai.com/v1'", "sk-openai-5551"},
		{"name = 'x'\napi_key = 'mine'", "mine"},
		{"name = 'x'\nbase_url = 'http://api.openai.com/v1'", ""},
		{"name = 'x'\nbase_url = 'http://localhost:8080/v1'", ""},
		{"name = 'x'\nbase_url = 'https://api.openai.com.example/v1'", ""},
		{"name = 'x'\nbase_url = 'https://notapi.openai.com/v1'", ""},
	}
	for _, test := range tests {
		c, err := parse("[model]\n"+test.text, nil)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
		} else if got := c.Model.APIKey.Reveal(); got != test.key {
			t.Errorf("%s: the key is %q, want %q", test.text, got, test.key)
		}
	}
}
