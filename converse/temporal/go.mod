module github.com/consort-go/consort/converse/temporal

go 1.26.0

require github.com/consort-go/consort v0.0.0-00010101000000-000000000000

require go.temporal.io/sdk v1.50.0 // indirect

replace github.com/consort-go/consort => ../..
