# SPDX-License-Identifier: Apache-2.0
"""A client that is generated from the original contract and knows no other.

Its stubs are on PYTHONPATH. It prints, as JSON, what the server at the address
lists and answers to the calls: tool, arguments, tool, arguments, ...
"""

import json
import sys

import grpc
from mcp.v1 import mcp_tool_pb2 as pb
from mcp.v1 import mcp_tool_pb2_grpc as rpc


def main():
    with grpc.insecure_channel(sys.argv[1]) as channel:
        stub = rpc.McpToolServiceStub(channel)
        listed = stub.ListTools(pb.ListToolsRequest(), timeout=20)
        said = {"tools": {t.name: json.loads(t.input_schema_json)["type"] for t in listed.tools}, "calls": []}
        for tool, arguments in zip(sys.argv[2::2], sys.argv[3::2]):
            answer = stub.CallTool(pb.ToolCallRequest(tool_name=tool, arguments_json=arguments), timeout=20)
            result = json.loads(answer.result_json) if answer.success else None
            said["calls"].append({"result": result, "code": pb.ErrorCode.Name(answer.error_code), "message": answer.error_message})
        print(json.dumps(said))


main()
