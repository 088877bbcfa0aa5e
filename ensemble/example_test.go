// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
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
	// [{weather reset it is denied by "re?et"}]
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

func ExampleNameFor() {
	fmt.Println(ensemble.NameFor("files", "read_file"))
	fmt.Println(ensemble.NameFor("files", "read.file"))
	// Output:
	// files__read_file
	// files__read_file-xqlrempdr4awr
}
