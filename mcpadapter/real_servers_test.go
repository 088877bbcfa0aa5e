// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/testing/realservers"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
)

var filesystemTools = []string{
	"create_directory", "directory_tree", "edit_file", "get_file_info", "list_allowed_directories", "list_directory",
	"list_directory_with_sizes", "move_file", "read_file", "read_media_file", "read_multiple_files", "read_text_file",
	"search_files", "write_file",
}

func TestRealFilesystem(t *testing.T) {
	t.Parallel()
	servers := realservers.Need(t)
	dir := realDir(t)
	r := newRealRoster(t, realEnsemble("files", stdioSource(servers.Filesystem(dir), mcpadapter.ClientOptions{}, nil)))
	r.offers(t, slices.Clone(filesystemTools)...)
	in := func(names ...string) string { return quoted(filepath.Join(append([]string{dir}, names...)...)) }
	t.Run("writing", func(t *testing.T) { filesystemWrites(t, r, in) })
	t.Run("reading", func(t *testing.T) { filesystemReads(t, r, in) })
	t.Run("media", func(t *testing.T) { filesystemMedia(t, r, dir) })
	t.Run("errors", func(t *testing.T) { filesystemErrors(t, r, in) })
	t.Run("rest", func(t *testing.T) {
		r.says(t, "files__list_allowed_directories", `{}`, dir)
		r.allCalled(t, filesystemTools...)
	})
}

// realDir is an empty directory whose name has no links in it.
func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func filesystemWrites(t *testing.T, r *realRoster, in func(...string) string) {
	r.says(t, "files__create_directory", `{"path":`+in("notes")+`}`, "Successfully created")
	r.says(t, "files__write_file", `{"path":`+in("notes", "a.txt")+`,"content":"one\ntwo\nthree\n"}`, "Successfully wrote")
	r.says(t, "files__edit_file", `{"path":`+in("notes", "a.txt")+`,"edits":[{"oldText":"two","newText":"2"}]}`, "-two", "+2")
	r.says(t, "files__move_file", `{"source":`+in("notes", "a.txt")+`,"destination":`+in("notes", "b.txt")+`}`, "Successfully moved")
}

func filesystemReads(t *testing.T, r *realRoster, in func(...string) string) {
	b := in("notes", "b.txt")
	contents := r.must(t, "files__read_text_file", `{"path":`+b+`}`)
	structured := only[canister.StructuredContent](contents)
	if canister.TextOf(contents) != "one\n2\nthree\n" || len(structured) != 1 || string(structured[0].JSON) != `{"content":"one\n2\nthree\n"}` {
		t.Errorf("read_text_file returns %v", contents)
	}
	r.says(t, "files__read_text_file", `{"path":`+b+`,"head":1}`, "one")
	r.says(t, "files__read_file", `{"path":`+b+`,"tail":2}`, "three")
	r.says(t, "files__read_multiple_files", `{"paths":[`+b+`,`+in("none")+`]}`, "three", "ENOENT")
	r.says(t, "files__list_directory", `{"path":`+in()+`}`, "[DIR] notes")
	r.says(t, "files__list_directory_with_sizes", `{"path":`+in("notes")+`,"sortBy":"size"}`, "b.txt", "12 B")
	r.says(t, "files__directory_tree", `{"path":`+in()+`}`, `"name": "b.txt"`)
	r.says(t, "files__search_files", `{"path":`+in()+`,"pattern":"**/*.txt"}`, "b.txt")
	r.says(t, "files__get_file_info", `{"path":`+b+`}`, "size: 12", "isFile: true")
}

// filesystemMedia: each kind of content arrives with its type, byte for byte.
func filesystemMedia(t *testing.T, r *realRoster, dir string) {
	data := []byte("\x00\x01\xfe\xff not text")
	for _, name := range []string{"a.png", "a.wav", "a.bin"} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) []canister.Content {
		return r.must(t, "files__read_media_file", `{"path":`+quoted(filepath.Join(dir, name))+`}`)
	}
	if images := only[canister.ImageContent](read("a.png")); len(images) != 1 || images[0].MIME != "image/png" || string(images[0].Data) != string(data) {
		t.Errorf("the image is %+v", images)
	}
	if sounds := only[canister.AudioContent](read("a.wav")); len(sounds) != 1 || sounds[0].MIME != "audio/wav" || string(sounds[0].Data) != string(data) {
		t.Errorf("the sound is %+v", sounds)
	}
	if others := only[canister.ResourceContent](read("a.bin")); len(others) != 1 || string(others[0].Blob) != string(data) ||
		!strings.HasSuffix(others[0].URI, "/a.bin") {
		t.Errorf("the resource is %+v", others)
	}
}

func filesystemErrors(t *testing.T, r *realRoster, in func(...string) string) {
	r.fails(t, "files__read_text_file", `{"path":"/etc/passwd"}`, invoker.ExecutionFailed, "Access denied")
	r.fails(t, "files__write_file", `{"path":`+in("..", "escaped.txt")+`,"content":""}`, invoker.ExecutionFailed, "Access denied")
	r.fails(t, "files__read_text_file", `{"path":`+in("none")+`}`, invoker.ExecutionFailed, "ENOENT")
	r.fails(t, "files__read_text_file", `{"path":`+in("notes", "b.txt")+`,"head":1,"tail":1}`, invoker.ExecutionFailed, "both head and tail")
	r.fails(t, "files__read_multiple_files", `{"paths":[]}`, invoker.InvalidArguments, "/paths: ")
	r.fails(t, "files__list_directory_with_sizes", `{"path":`+in()+`,"sortBy":"age"}`, invoker.InvalidArguments, "/sortBy: ")
	r.fails(t, "files__edit_file", `{"path":`+in("notes", "b.txt")+`,"edits":[{"oldText":"one"}]}`, invoker.InvalidArguments, "/edits/0/newText: ")
}

// TestRealFilesystemRoots: the roots of the client are where the server works.
func TestRealFilesystemRoots(t *testing.T) {
	t.Parallel()
	servers := realservers.Need(t)
	granted, other := realDir(t), realDir(t)
	client := mcpadapter.ClientOptions{Roots: []mcpadapter.Root{{URI: "file://" + granted, Name: "granted"}}}
	r := newRealRoster(t, realEnsemble("files", stdioSource(servers.Filesystem(other), client, nil)))
	allowed := func() string { return canister.TextOf(r.must(t, "files__list_allowed_directories", `{}`)) }
	if !comesTrue(func() bool { return strings.Contains(allowed(), granted) }) {
		t.Errorf("the server works in %q, not in %s", allowed(), granted)
	}
	r.fails(t, "files__list_directory", `{"path":`+quoted(other)+`}`, invoker.ExecutionFailed, "Access denied")
}

var memoryTools = []string{
	"add_observations", "create_entities", "create_relations", "delete_entities", "delete_observations",
	"delete_relations", "open_nodes", "read_graph", "search_nodes",
}

func TestRealMemory(t *testing.T) {
	t.Parallel()
	servers := realservers.Need(t)
	env := map[string]string{"MEMORY_FILE_PATH": filepath.Join(t.TempDir(), "graph.jsonl")}
	memory := realEnsemble("memory", stdioSource(servers.Memory(), mcpadapter.ClientOptions{}, env))
	r := newRealRoster(t, memory)
	r.offers(t, slices.Clone(memoryTools)...)
	r.says(t, "memory__create_entities",
		`{"entities":[{"name":"Ada","entityType":"person","observations":["writes notes"]},{"name":"Engine","entityType":"machine","observations":[]}]}`, "Ada")
	r.says(t, "memory__create_relations", `{"relations":[{"from":"Ada","to":"Engine","relationType":"programs"}]}`, "programs")
	r.says(t, "memory__add_observations", `{"observations":[{"entityName":"Engine","contents":["is of brass"]}]}`, "brass")
	r.says(t, "memory__search_nodes", `{"query":"brass"}`, "Engine")
	r.says(t, "memory__open_nodes", `{"names":["Ada"]}`, "writes notes")
	r.fails(t, "memory__add_observations", `{"observations":[{"entityName":"Nobody","contents":[]}]}`, invoker.ExecutionFailed, "Nobody")
	r.fails(t, "memory__create_entities", `{"entities":[{"name":"Ada"}]}`, invoker.InvalidArguments, "/entities/0/entityType: ", "/entities/0/observations: ")

	if err := memory.Disconnect(atLast(t)); err != nil {
		t.Fatal(err)
	}
	r.says(t, "memory__read_graph", `{}`, "brass") // of a second process

	r.must(t, "memory__delete_observations", `{"deletions":[{"entityName":"Engine","observations":["is of brass"]}]}`)
	r.must(t, "memory__delete_relations", `{"relations":[{"from":"Ada","to":"Engine","relationType":"programs"}]}`)
	r.must(t, "memory__delete_entities", `{"entityNames":["Ada","Engine"]}`)
	graph := only[canister.StructuredContent](r.must(t, "memory__read_graph", `{}`))
	if len(graph) != 1 || string(graph[0].JSON) != `{"entities":[],"relations":[]}` {
		t.Errorf("the graph holds %s", graph)
	}
	r.allCalled(t, memoryTools...)
}

func TestRealSequentialThinking(t *testing.T) {
	t.Parallel()
	servers := realservers.Need(t)
	r := newRealRoster(t, realEnsemble("thinking", stdioSource(servers.SequentialThinking(), mcpadapter.ClientOptions{}, nil)))
	r.offers(t, "sequentialthinking")
	const tool = "thinking__sequentialthinking"
	r.must(t, tool, `{"thought":"First.","nextThoughtNeeded":true,"thoughtNumber":1,"totalThoughts":2}`)
	r.must(t, tool, `{"thought":"Or else.","nextThoughtNeeded":"false","thoughtNumber":2,"totalThoughts":2,"branchFromThought":1,"branchId":"b"}`)
	state := only[canister.StructuredContent](r.must(t, tool, `{"thought":"Last.","nextThoughtNeeded":false,"thoughtNumber":3,"totalThoughts":2}`))
	var got struct {
		ThoughtHistoryLength int
		Branches             []string
		TotalThoughts        int
	}
	if len(state) != 1 || json.Unmarshal(state[0].JSON, &got) != nil || got.ThoughtHistoryLength != 3 ||
		!slices.Equal(got.Branches, []string{"b"}) || got.TotalThoughts != 3 {
		t.Errorf("the state is %s", state)
	}
	r.fails(t, tool, `{"thought":"No.","nextThoughtNeeded":1,"thoughtNumber":0,"totalThoughts":1}`, invoker.InvalidArguments,
		"/nextThoughtNeeded: ", "/thoughtNumber: ")
}
