# SPDX-License-Identifier: Apache-2.0
"""A tool server that is generated from the original contract and knows no other.

Its stubs are on PYTHONPATH. Its arguments are the set of tools and a port. It
prints the port, and ends with its standard input.
"""

import json
import sys
import threading
from concurrent import futures

import grpc
from mcp.v1 import mcp_tool_pb2 as pb
from mcp.v1 import mcp_tool_pb2_grpc as rpc

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = {
    "echo": ("Says it again.", TEXT, "test"),
    "fail": ("Fails.", TEXT, "test"),
    "wait": ("Waits.", {"type": "object"}, "test"),
    "progress": ("Counts.", {"type": "object", "properties": {"steps": {"type": "integer", "minimum": 1}}}, "test"),
}
FARM = {
    "get_farmer": ("Finds a farmer.", {"type": "object", "properties": {"farmer_id": {"type": "string"}}}, "query"),
    "search_notes": ("Searches notes.", {"type": "object"}, "search"),
}


def failed(code, message):
    return pb.ToolCallResponse(success=False, error_code=code, error_message=message)


class Service(rpc.McpToolServiceServicer):
    def __init__(self, tools):
        self.tools = tools

    def ListTools(self, request, context):
        return pb.ListToolsResponse(tools=[
            pb.ToolDefinition(name=name, description=description, input_schema_json=json.dumps(schema), category=category)
            for name, (description, schema, category) in self.tools.items()
            if request.category in ("", category)
        ])

    def CallTool(self, request, context):
        if request.tool_name not in self.tools:
            return failed(pb.ERROR_CODE_TOOL_NOT_FOUND, "no tool " + request.tool_name)
        answer = getattr(self, request.tool_name)(json.loads(request.arguments_json), request, context)
        if isinstance(answer, pb.ToolCallResponse):
            return answer
        return pb.ToolCallResponse(success=True, result_json=json.dumps(answer))

    def echo(self, arguments, request, context):
        return arguments["text"]

    def fail(self, arguments, request, context):
        return failed(pb.ERROR_CODE_INTERNAL_ERROR, arguments["text"])

    def wait(self, arguments, request, context):
        ended = threading.Event()
        if context.add_callback(ended.set):
            ended.wait()

    def progress(self, arguments, request, context):
        return "done"

    def get_farmer(self, arguments, request, context):
        farmer = arguments.get("farmer_id", "")
        if farmer == "offline":
            return failed(pb.ERROR_CODE_SERVICE_UNAVAILABLE, "MongoDB cannot be reached")
        if farmer == "crash":
            raise RuntimeError("no such table")
        if not farmer.startswith("WM-"):
            return failed(pb.ERROR_CODE_INVALID_ARGUMENTS, "farmer_id must begin with WM-")
        return {"farmer_id": farmer, "name": "Wanjikũ", "asked_by": request.caller_agent_id}

    def search_notes(self, arguments, request, context):
        return None


def main():
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=100))
    rpc.add_McpToolServiceServicer_to_server(Service(FARM if sys.argv[1] == "farm" else TOOLS), server)
    print(server.add_insecure_port("127.0.0.1:%s" % (sys.argv[2])), flush=True)
    server.start()
    sys.stdin.read()
    server.stop(0).wait()


main()
