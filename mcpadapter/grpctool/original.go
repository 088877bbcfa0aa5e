// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"strings"
	"sync"

	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/reflection"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionalphapb "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// The original package and its file, as named in the contract.
const (
	originalPackage = "farmer_power.mcp.v1"
	originalFile    = "mcp/v1/mcp_tool.proto"
)

// originalDesc is the service under its original name. It uses our messages; the wire
// format is the same.
var originalDesc = func() grpc.ServiceDesc {
	desc := toolspb.McpToolService_ServiceDesc
	desc.ServiceName, desc.Metadata = OriginalService, originalFile
	return desc
}()

// reflect registers reflection on a server for all of its services, including the one
// under its original name.
func reflect(on grpc.ServiceRegistrar, services reflection.ServiceInfoProvider) {
	options := reflection.ServerOptions{Services: services, DescriptorResolver: withOriginal{}}
	reflectionpb.RegisterServerReflectionServer(on, reflection.NewServerV1(options))
	reflectionalphapb.RegisterServerReflectionServer(on, reflection.NewServer(options))
}

// withOriginal resolves the descriptors of this program and of the original package,
// which are renamed copies of ours.
type withOriginal struct{}

var original = sync.OnceValue(func() *protoregistry.Files {
	form := protodesc.ToFileDescriptorProto(toolspb.File_consort_tools_v1_tools_proto)
	ours := "." + form.GetPackage() + "."
	form.Name, form.Package = proto.String(originalFile), proto.String(originalPackage)
	rename := func(name *string) {
		if name != nil {
			*name = strings.Replace(*name, ours, "."+originalPackage+".", 1)
		}
	}
	for _, message := range form.GetMessageType() {
		for _, field := range message.GetField() {
			rename(field.TypeName)
		}
	}
	for _, service := range form.GetService() {
		for _, method := range service.GetMethod() {
			rename(method.InputType)
			rename(method.OutputType)
		}
	}
	files, err := protodesc.NewFiles(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{form}})
	if err != nil {
		panic(err) // the file is compiled in and covered by a test
	}
	return files
})

// FindFileByPath implements protodesc.Resolver.
func (withOriginal) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	if path == originalFile {
		return original().FindFileByPath(path)
	}
	return protoregistry.GlobalFiles.FindFileByPath(path)
}

// FindDescriptorByName implements protodesc.Resolver.
func (withOriginal) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	if strings.HasPrefix(string(name), originalPackage+".") {
		return original().FindDescriptorByName(name)
	}
	return protoregistry.GlobalFiles.FindDescriptorByName(name)
}
