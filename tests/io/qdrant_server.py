"""A Qdrant server that answers out of a collection in memory."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler

from qdrant_client import models


class Server(BaseHTTPRequestHandler):
    """Handle requests with the right key, from a collection in memory."""

    there = None
    indexed = None  # the kind of the index of `time`

    def do_GET(self):
        if self.headers["api-key"] != "s3cret/":
            return self.answer(403, {"status": {"error": f"bad key {self.headers['api-key']}"}})
        if self.path == "/collections":
            return self.answer(200, {"result": {"collections": [{"name": "faces"}]}})
        assert self.path == "/collections/faces"
        about = self.there.get_collection("faces").model_dump(mode="json")
        if self.indexed:
            about["payload_schema"] = {"time": {"data_type": self.indexed, "points": 300}}
        return self.answer(200, {"result": about})

    def do_POST(self):
        given = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.startswith("/collections/faces/points/batch"):
            operations = models.UpdateOperations.model_validate_json(given).operations
            self.there.batch_update_points("faces", operations)
            return self.answer(200, {"result": [{"status": "completed"}] * len(operations)})
        if self.path.startswith("/collections/faces/points/count"):
            which = models.CountRequest.model_validate_json(given).filter
            return self.answer(200, {"result": self.there.count("faces", which).model_dump()})
        assert self.path.startswith("/collections/faces/points/scroll")
        asked = models.ScrollRequest.model_validate_json(given)
        words = asked.model_dump(exclude={"filter", "with_vector", "shard_key", "order_by"})
        words |= {"scroll_filter": asked.filter, "with_vectors": asked.with_vector}
        points, after = self.there.scroll("faces", order_by=asked.order_by, **words)
        points = [point.model_dump(mode="json") for point in points]
        return self.answer(200, {"result": {"points": points, "next_page_offset": after}})

    def answer(self, status, record):
        body = json.dumps(record).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass
