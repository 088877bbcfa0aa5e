// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/uiaddress"
	"github.com/consort-go/consort/invoker"
)

// allKnown is the connection of a server that has each resource that it is asked for.
type allKnown struct {
	ensemble.Connection
	ensemble.Library
	asked *[]string
}

func (a allKnown) Ping(context.Context) error { return nil }

func (a allKnown) Read(_ context.Context, uri string) ([]canister.ResourceContent, error) {
	*a.asked = append(*a.asked, uri)
	return []canister.ResourceContent{{URI: uri, Text: "text"}}, nil
}

func (a allKnown) Subscribe(_ context.Context, uri string) error {
	*a.asked = append(*a.asked, uri)
	return nil
}

func (a allKnown) Unsubscribe(context.Context, string) error { return nil }

func (a allKnown) Complete(context.Context, *ensemble.CompletionRequest) (*ensemble.Completion, error) {
	return &ensemble.Completion{Values: []string{"reports/a", "secret/a", "%73ecret/a", "/secret/a", "x/../secret/a"}}, nil
}

// Open implements [ensemble.Source].
func (a allKnown) Open(ctx context.Context) (ensemble.Connection, error) {
	library := local.Library{Templates: []local.Template{{
		Template: ensemble.Template{URI: "file:///{+path}"},
		Read: func(context.Context, string, map[string]string) ([]canister.ResourceContent, error) {
			return nil, nil
		},
	}}, Resources: []local.Resource{{Resource: ensemble.Resource{URI: "any:///"}, Read: func(context.Context) ([]canister.ResourceContent, error) {
		return nil, nil
	}}}}
	c, err := library.Source().Open(ctx)
	if err != nil {
		return nil, err
	}
	return allKnown{c, c.(ensemble.Library), a.asked}, nil
}

// served returns what the client ada may use of a server named shop that has each resource,
// and the resources that the server was asked for.
func served(t *testing.T, rules string) (s *ensemble.Selection, asked *[]string) {
	t.Helper()
	parts, err := config.Assemble(parsed(t, threeClients+rules), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = parts.Close(context.Background()) })
	asked = new([]string)
	if err := parts.Roster.Replace(ensemble.New("shop", uiaddress.Source("shop", allKnown{asked: asked}), nil)); err != nil {
		t.Fatal(err)
	}
	return parts.Serve.Select(access.WithName(t.Context(), "ada")), asked
}

// What a rule hides is hidden in all spellings: the server is not asked for it.
func TestSpellingsOfHiddenResources(t *testing.T) {
	for _, test := range []struct {
		action, pattern string
		uris            []string
	}{
		{"allow", "file:///reports/*", []string{
			"file:///reports/..\t/secret/a", "file:///reports/..\n/secret/a", "file:///reports/.\r./secret/a", "file:///reports/../secret/a",
			"file:///reports/%2e%2E/secret/a", "file:///reports/..%2fsecret/a", `file:///reports/..\secret/a`, "file:///reports/a#/../../secret/a", "/secret/a",
		}},
		{"allow", "file:///reports/*.txt", []string{"file:///reports/key.pem#.txt", "file:///reports/key.pem?.txt", "file:///reports/key.pem%23.txt"}},
		{"allow", "file:///data-?/*", []string{"file:///data-?/x"}},
		{"allow", "file:///data-??/*", []string{"file:///data-1?/x", "file:///data-?1/x", "file:///data-1%3F/x"}},
		{"allow", "file:///*.db?", []string{"file:///users.db?"}},
		{"allow", "file:///node-?-shard=*/out", []string{"file:///node-?-shard=1/out"}},
		{"deny", "https://h/file?path=/secret*", []string{"https://h/file/?path=/secret/a", "https://h/file/?path=/secret/a#x"}},
		{"allow", "https://h/file?path=/docs/*", []string{"https://h/file?path=/secret/a", "https://h/x?path=/docs/a"}},
		{"deny", "file:///etc/passwd", []string{"file:///etc/passwd/", "file:///etc/passwd/.", "file:///etc/passwd//", "file:///etc/passwd/?x"}},
		{"deny", "file:///my secret/*", []string{"file:///my%20secret/a", "file:///my secret/a"}},
		{"deny", "file:///my%20secret/*", []string{"file:///my secret/a"}},
		{"deny", "file:///secret/*", []string{
			"file:///secret/a", "file:///sec\tret/a", "file:/secret/a", "file:secret/a", "file://localhost/secret/a", `file:\\\secret\a`, `file:///secret\a`,
			"file:///%73ecret/a", "file:////secret/a", " file:///secret/a", "file:///secret/a\x7f", "file://h/secret/a", "fi\nle:///secret/a",
		}},
		{"deny", "https://h/private/*", []string{
			"https:/h/private/x", "https:h/private/x", "https:///h/private/x", "https://h:443/private/x", "https://user@h/private/x", "https://u:p@H/private/x",
			"https://h/%70rivate/x", "https://h/%70rivate/x?q=%", `https:\\h\private\x`, "https://h/a/..//private/x",
		}},
		{"deny", "https://h:443/private/*", []string{"https://h/private/x"}},
		{"deny", "note:///secret", []string{"note:///secret#x", "note:///secret?", "note:/secret", "note:///%73ecret#x"}},
		{"deny", "ui://shop/admin*", []string{
			"ui://admin", "ui://admin/x", "UI://admin", "ui:admin", "%75i://admin", "u\ti://admin", "ui://shop/admin", "ui://SHOP/admin",
			"ui://shop/ADMIN", "ui://shop/%61dmin", "ui://shop//admin",
		}},
		{"deny", "x://a%2fb", []string{"x://a%2Fb", "x://a/b"}},
	} {
		for _, rule := range []string{
			fmt.Sprintf("%s = [%q]", test.action, test.pattern),
			fmt.Sprintf("[[serve.rules]]\naction = %q\nresources = [%q]", test.action, test.pattern),
		} {
			s, asked := served(t, rule)
			for _, uri := range test.uris {
				if _, err := s.ReadResource(t.Context(), uri); err == nil || invoker.AsFailure(err).Code != invoker.NotFound {
					t.Errorf("%s: reading %q: %v", rule, uri, err)
				}
				if _, err := s.Subscribe(t.Context(), uri); err == nil || invoker.AsFailure(err).Code != invoker.NotFound {
					t.Errorf("%s: subscribing to %q: %v", rule, uri, err)
				}
			}
			if len(*asked) > 0 {
				t.Errorf("%s: the server was asked for %q", rule, *asked)
			}
		}
	}
}

// Values that lead to a hidden resource are not proposed.
func TestSpellingsOfHiddenCompletions(t *testing.T) {
	s, _ := served(t, `deny = ["file:///secret/*"]`)
	found, err := s.Complete(t.Context(), &ensemble.CompletionRequest{Template: "file:///{+path}", Argument: "path"})
	if err != nil || !slices.Equal(found.Values, []string{"reports/a"}) {
		t.Errorf("%v, %v", found, err)
	}
}

// A resource that is not hidden is read with the spelling that the client has sent.
func TestSpellingsOfResources(t *testing.T) {
	for uri, rule := range map[string]string{
		"file:///reports/a%20b":          `allow = ["file:///reports/*"]`,
		"file:///reports/../reports/é":   `allow = ["file:///reports/*"]`,
		"file:///my%20notes/a":           `allow = ["file:///my%20notes/*"]`,
		"file:///my notes/a":             `allow = ["file:///my notes/*"]`,
		"file:///my%20notes/b":           `allow = ["file:///my notes/*"]`,
		"file:///my notes/c":             `allow = ["file:///my%20notes/*"]`,
		"file://localhost/reports/a":     `allow = ["file://localhost/*"]`,
		"https://u@h:443/a%2Fb?x=%26#y":  `allow = ["https://u@h:443/*"]`,
		"Repo://Owner/Name/contents/%41": "[[serve.rules]]\naction='allow'\nresources=['Repo://Owner/*']",
		"db:users/a%2fb":                 `deny = ["db:secret/*"]`,
		"x://items?id=A%2FB":             `allow = ["x://items?id=*"]`,
		"x://items?q":                    `allow = ["x://items?*"]`,
		"https://h/file?path=/docs/a":    `allow = ["https://h/file?path=/docs/*"]`,
		"repo://o/n?ref=heads/main":      `allow = ["repo://o/n?ref=heads/*"]`,
		"file:///data-12/x":              `allow = ["file:///data-??/*"]`,
		"file:///folder/":                `allow = ["file:///folder/"]`,
		"note:///a#x":                    `allow = ["note:///a#x"]`,
		"urn:isbn:0-395-36341-1":         `deny = ["file:*"]`,
		"search://100%":                  `deny = ["file:*"]`,
	} {
		s, asked := served(t, rule)
		if _, err := s.ReadResource(t.Context(), uri); err != nil || !slices.Equal(*asked, []string{uri}) {
			t.Errorf("%s: reading %s: %v; the server was asked for %q", rule, uri, err, *asked)
		}
	}
	s, asked := served(t, `allow = ["ui://shop/*"]`)
	if _, err := s.ReadResource(t.Context(), "ui://shop/a%20b?c"); err != nil || !slices.Equal(*asked, []string{"ui://a%20b?c"}) {
		t.Errorf("%v; the server was asked for %q", err, *asked)
	}
}
