// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/provider"
	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// Each provider opens its models, and is asked for with the model that it proposes.
func TestEachProviderIsProposed(t *testing.T) {
	for _, p := range provider.All {
		c, err := config.Parse("consort.toml", []byte("[model]\nname = \""+p.Proposed+"\"\n"), &config.Options{Lookup: func(name string) (string, bool) { return "key", name == p.Key }})
		if err != nil {
			t.Fatal(err)
		}
		assembly, err := config.Assemble(c, nil)
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
			continue
		}
		defer assembly.Close(context.Background())
	}
}

// TestProviders: a name or a base URL is enough to say whose API it is, and each provider
// gets only its own key.
func TestProviders(t *testing.T) {
	keys := func(name string) (string, bool) {
		key, ok := map[string]string{"OPENAI_API_KEY": "key-of-openai", "ANTHROPIC_API_KEY": "key-of-anthropic"}[name]
		return key, ok
	}
	server, err := openaiserver.Start(openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{{Reply: openaiserver.Message{Text: "Hello."}}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	base := strings.TrimSuffix(server.URL(), "/v1")
	for _, test := range []struct{ model, key, path string }{
		{`name = "claude-sonnet-4-5"`, "key-of-anthropic", ""},
		{`name = "gpt-5.6"`, "key-of-openai", ""},
		{`name = "claude-x"` + "\n" + `base_url = "` + base + `/v1"`, "", "/v1/chat/completions"},
		{`name = "m"` + "\n" + `provider = "anthropic"` + "\n" + `base_url = "` + base + `"`, "", "/v1/messages"},
		{`name = "m"` + "\n" + `provider = "anthropic"` + "\n" + `base_url = "` + base + `/v1"`, "", "/v1/messages"},
		{`name = "m"` + "\n" + `base_url = "https://api.anthropic.com/v1"`, "key-of-anthropic", ""},
		{`name = "m"` + "\n" + `base_url = "http://api.anthropic.com"`, "", ""},
		{`name = "m"` + "\n" + `base_url = "` + base + `/v1"` + "\n" + `api = "responses"`, "", "/v1/responses"},
	} {
		c, err := config.Parse("consort.toml", []byte("[model]\n"+test.model+"\n"), &config.Options{Lookup: keys})
		if err != nil {
			t.Errorf("%s: %v", test.model, err)
			continue
		}
		if key := c.Model.APIKey.Reveal(); key != test.key {
			t.Errorf("%s: the key is %q, want %q", test.model, key, test.key)
		}
		if test.path == "" {
			continue
		}
		assembly, err := config.Assemble(c, nil)
		if err != nil {
			t.Errorf("%s: %v", test.model, err)
			continue
		}
		talk := converse.New(assembly.Model, nil, nil)
		for _, err := range talk.Send(t.Context(), canister.Text("Hi")) {
			if err != nil {
				t.Errorf("%s: %v", test.model, err)
			}
		}
		if err := assembly.Close(context.Background()); err != nil {
			t.Error(err)
		}
		requests := server.Requests()
		if path := requests[len(requests)-1].Path; path != test.path {
			t.Errorf("%s: asked %s, want %s", test.model, path, test.path)
		}
	}
}

// TestKeysOfAProvider: what a provider does not have is an error with its place.
func TestKeysOfAProvider(t *testing.T) {
	for text, says := range map[string]string{
		"[model]\nname = \"claude-x\"\nseed = 7\n":              "consort.toml:3:8: model.seed: Anthropic's Messages API does not have it: remove seed",
		"[model]\nname = \"gpt-x\"\nthinking = \"adaptive\"\n":  `set provider = "anthropic"`,
		"[model]\nname = \"claude-x\"\norganization = \"o\"\n":  "model.organization",
		"[model]\nname = \"claude-x\"\nprovider = \"google\"\n": `"anthropic" or "openai"`,
	} {
		if _, err := config.Parse("consort.toml", []byte(text), nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s\n%v, want %q", text, err, says)
		}
	}
}

// TestKeyForAnotherAddress: if a server wants a key, and the one at hand belongs to another
// address, the error says that it was not sent, and how to send it.
func TestKeyForAnotherAddress(t *testing.T) {
	refuses := openaiserver.Step{Reply: openaiserver.Unauthorized()}
	server, err := openaiserver.Start(openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{refuses}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	const file = "[model]\nname = 'm'\napi_key = 'sk-of-the-file-0123456789'\n"
	for _, test := range []struct{ text, variable, want string }{
		{"", "sk-0123456789abcdef", "the key in OPENAI_API_KEY was not sent, because it is for OpenAI's own address only"},
		{"", "sk-0123456789abcdef", "--set model.api_key=env:OPENAI_API_KEY"},
		{file, "", "--set model.api_key=env:NAME: a key of the file is not sent"},
	} {
		t.Setenv("OPENAI_API_KEY", test.variable)
		settings := []string{"model.name=m", "model.base_url=" + server.URL()}
		c, err := config.Parse("consort.toml", []byte(test.text), &config.Options{Set: settings})
		if err != nil {
			t.Fatal(err)
		}
		assembly, err := config.Assemble(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range converse.New(assembly.Model, nil, nil).Send(t.Context(), canister.Text("Hi")) {
			if err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %q, want %q", err, test.want)
			}
		}
		if err := assembly.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}
