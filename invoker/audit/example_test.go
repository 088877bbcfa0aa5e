// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
)

func Example() {
	folder, err := os.MkdirTemp("", "audit")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	file, err := audit.OpenFile(filepath.Join(folder, "audit.jsonl"), nil)
	if err != nil {
		log.Fatal(err)
	}
	trail := audit.New(file, &audit.Options{Identity: []string{"user_id"}, Omit: []string{"*password*"}})

	ctx := invoker.WithTrusted(context.Background(), invoker.NewTrusted[int64]("user_id").Value(42))
	record := audit.Record{
		Time:      time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC),
		Asker:     "program",
		Tool:      "sign_up",
		Arguments: json.RawMessage(`{"name": "Ada", "new_password": "hunter2"}`),
	}
	record.Ended(nil, invoker.Failf(invoker.Denied, "Nobody may sign up today."))
	trail.Keep(ctx, record)
	if err := file.Close(); err != nil {
		log.Fatal(err)
	}

	text, err := os.ReadFile(filepath.Join(folder, "audit.jsonl"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(text))
	// Output:
	// {"time":"2026-03-01T09:30:00Z","asker":"program","tool":"sign_up","identity":{"user_id":42},"arguments":{"name":"Ada","new_password":"[omitted]"},"code":"DENIED","error":"Nobody may sign up today."}
}

func ExampleRead() {
	file, err := os.CreateTemp("", "audit")
	if err != nil {
		log.Fatal(err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	fmt.Fprintln(file, `{"time":"2026-03-01T09:30:00Z","tool":"add_task","code":"OK"}`)
	fmt.Fprintln(file, `{"time":"2026-03-01T09:30:01Z","tool":"add_`)
	fmt.Fprintln(file, `{"time":"2026-03-01T09:30:02Z","tool":"list_tasks","code":"OK"}`)
	if _, err := file.Seek(0, 0); err != nil {
		log.Fatal(err)
	}
	for record, err := range audit.Read(file) {
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(record.Tool, record.Code)
	}
	// Output:
	// add_task OK
	// audit: line 2 is not a record: unexpected end of JSON input
	// list_tasks OK
}
