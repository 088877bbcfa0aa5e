// SPDX-License-Identifier: Apache-2.0

package settings_test

import (
	"testing"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/config/internal/settings"
	"github.com/consort-go/consort/config/values"
)

// Another command, environment, header or place is another server; other limits are not.
func TestText(t *testing.T) {
	value := values.Plain
	seen := map[string]int{}
	for i, server := range []any{
		&config.Server{Transport: config.Stdio, Command: []values.Value{value("server"), value("-x")}},
		&config.Server{Transport: config.Stdio, Command: []values.Value{value("server -x")}},
		&config.Server{Transport: config.Stdio, Command: []values.Value{value("server")}, Environment: map[string]values.Value{"A": value("1")}},
		&config.Server{Transport: config.Stdio, Command: []values.Value{value("server")}, Environment: map[string]values.Value{"A": value("2")}},
		&config.Server{Transport: config.Stdio, Command: []values.Value{value("server")}, Directory: value("/a")},
		&config.Server{Transport: config.HTTP, URL: value("https://a.test/")},
		&config.Server{Transport: config.HTTP, URL: value("https://a.test/"), Headers: map[string]values.Value{"X-User": value("ann")}},
		&config.Server{Transport: config.HTTP, URL: value("https://a.test/"), OAuth: &config.OAuth{}},
		&config.GRPCServer{Address: value("a.test:1")},
		&config.GRPCServer{Address: value("a.test:2")},
	} {
		text := settings.Text(server, "/home")
		if before, there := seen[text]; there {
			t.Errorf("the servers %d and %d have the same text: %s", before, i, text)
		}
		seen[text] = i
	}
	if there := settings.Text(&config.Server{Transport: config.Stdio, Command: []values.Value{value("server -x")}}, "/tmp"); seen[there] != 0 {
		t.Error("another place is the same server")
	}
	limited := &config.Server{Transport: config.HTTP, URL: value("https://a.test/")}
	limited.PinPolicy = "warn"
	if _, same := seen[settings.Text(limited, "/home")]; !same {
		t.Error("what manages a connection is part of the text")
	}
}
