// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/invoker"
)

func Example() {
	ctx := context.Background()
	roster, err := ensemble.NewRoster(
		ensemble.Local("weather", ensembletest.Returns("report", "3 °C and rain")),
		ensemble.Local("wardrobe", ensembletest.Returns("list", "boots, a coat")),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer roster.Close(ctx)

	catalog, err := roster.Catalog(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tool := range catalog.Tools() {
		output, err := tool.Invoke(ctx, &invoker.Call{})
		fmt.Println(tool.Name(), canister.TextOf(output.Content), err)
	}
	// Output:
	// wardrobe__list boots, a coat <nil>
	// weather__report 3 °C and rain <nil>
}

func ExampleOptions() {
	type settings struct{ Unit string }
	report := ensembletest.NewTool("report", func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
		s, _ := ensemble.Settings[settings](ctx)
		return invoker.Output{Content: canister.Texts("3 " + s.Unit)}, nil
	})
	reset := ensembletest.Returns("reset", "")

	ctx := context.Background()
	weather := ensemble.New("weather", ensemble.LocalSource(report, reset), &ensemble.Options{
		Settings: settings{Unit: "°C"},
		Deny:     []string{"re?et"},
	})
	defer weather.Close(ctx)
	tools, err := weather.Tools(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	output, _ := tools[0].Invoke(ctx, &invoker.Call{})
	fmt.Println(tools[0].Name(), canister.TextOf(output.Content))
	fmt.Println(weather.Snapshot().Aside)
	// Output:
	// weather__report 3 °C
	// [{weather reset the deny list has "re?et"}]
}

// An ensemble that cannot be reached does not keep the others from working.
func ExampleRoster_Catalog() {
	down := ensembletest.NewSource()
	down.Fail(ensembletest.Open, 1, errors.New("connection refused"))

	ctx := context.Background()
	roster, err := ensemble.NewRoster(
		ensemble.New("database", down, nil),
		ensemble.Local("clock", ensembletest.Returns("now", "12:00")),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer roster.Close(ctx)
	catalog, err := roster.Catalog(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(catalog.Tools()[0].Name())
	fmt.Println(catalog.Away()[0].Err)
	// Output:
	// clock__now
	// ensemble "database": cannot connect: connection refused
}

// A server that keeps dying is parked until Connect is called.
func ExampleRestart() {
	source := ensembletest.NewSource(ensembletest.Returns("now", "12:00"))
	source.Fail(ensembletest.Open, 2, errors.New("exit status 127"))
	clock := ensemble.New("clock", source, &ensemble.Options{
		Restart: ensemble.Restart{Policy: ensemble.RestartAlways, Tries: 2, Window: time.Minute},
	})
	ctx := context.Background()
	defer clock.Close(ctx)

	clock.Connect(ctx)
	fmt.Println(clock.Snapshot().State)
	for clock.Snapshot().State != ensemble.Parked { // it tries again by itself
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println(clock.Snapshot().LastError)
	fmt.Println(clock.Connect(ctx), clock.Snapshot().State)
	// Output:
	// lost
	// ensemble "clock": cannot connect: exit status 127 (parked after 2 failures within 1m0s; Ensemble.Connect revives it)
	// <nil> ready
}

// HealthHandler reports the state of the ensembles as JSON.
func ExampleRoster_HealthHandler() {
	ctx := context.Background()
	roster, err := ensemble.NewRoster(ensemble.Local("clock", ensembletest.Returns("now", "12:00")))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer roster.Close(ctx)
	server := httptest.NewServer(roster.HealthHandler())
	defer server.Close()

	response, err := http.Get(server.URL + "/health/mcp")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	var health ensemble.Health
	if err := json.NewDecoder(response.Body).Decode(&health); err != nil {
		fmt.Println(err)
		return
	}
	clock := health.Ensembles[0]
	fmt.Println(response.StatusCode, health.Ready, clock.Name, clock.State, clock.Calls)
	// Output:
	// 200 true clock idle 0
}

func ExampleCatalog_Nearest() {
	ctx := context.Background()
	roster, err := ensemble.NewRoster(ensemble.Local("files", ensembletest.Returns("read_file", ""), ensembletest.Returns("copy", "")))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer roster.Close(ctx)
	catalog, err := roster.Catalog(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(catalog.Nearest("raed_file", 1))
	// Output:
	// [files__read_file]
}

func ExampleRoster_Watch() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	updates := new(local.Updates)
	notes := ensemble.New("notes", local.Library{
		Resources: []local.Resource{ensembletest.TextResource("note://today", "Buy brass.")},
		Updates:   updates,
	}.Source(), nil)
	roster, err := ensemble.NewRoster(notes)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer roster.Close(ctx)
	news := roster.Watch(ctx)
	stop, err := roster.Subscribe(ctx, "note://today")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	updates.Tell("note://today")
	for n := range news {
		fmt.Println(n.Ensemble, n.Kind, n.URI)
		break
	}
	// Output:
	// notes updated note://today
}

func ExampleNameFor() {
	fmt.Println(ensemble.NameFor("files", "read_file"))
	fmt.Println(ensemble.NameFor("files", "read.file"))
	// Output:
	// files__read_file
	// files__read_file-xqlrempdr4awr
}
