// SPDX-License-Identifier: Apache-2.0

package toolsearch_test

import (
	"fmt"

	"github.com/consort-go/consort/internal/toolsearch"
)

func ExampleIndex_Search() {
	tools := []toolsearch.Entry{
		{Server: "files", Name: "delete_file", Description: "Deletes a file."},
		{Server: "files", Name: "list_directory", Description: "Lists what is in a directory."},
		{Server: "mail", Name: "sendMessage", Description: "Sends a letter."},
	}
	index := toolsearch.New(tools)
	for _, query := range []string{"remove files", "what is in my folder?", "message"} {
		for _, found := range index.Search(query, 1) {
			fmt.Println(tools[found.Entry].Name)
		}
	}
	// Output:
	// delete_file
	// list_directory
	// sendMessage
}
