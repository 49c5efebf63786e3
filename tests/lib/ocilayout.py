#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
"""ocilayout.py: write an OCI image layout directory from tar archives.

usage: ocilayout.py [OPTION...] DIR LAYER.tar...
Plain Python, so that a sample image needs no image tool. Same input, same
bytes: all dates are fixed. Also imported by mknasty.py.
"""

import argparse
import gzip
import hashlib
import json
import os
import subprocess

DATE = "2024-01-01T00:00:00Z"
TYPES = "application/vnd.oci.image."
CODECS = {"gzip": "+gzip", "zstd": "+zstd", "none": ""}


class Layout:
    """An image layout that grows: add layers, then finish."""

    def __init__(self, path):
        self.path, self.layers, self.diff_ids = path, [], []
        os.makedirs(path + "/blobs/sha256", exist_ok=True)

    def put(self, media_type, data):
        digest = hashlib.sha256(data).hexdigest()
        with open("%s/blobs/sha256/%s" % (self.path, digest), "wb") as f:
            f.write(data)
        return {"mediaType": TYPES + media_type, "digest": "sha256:" + digest, "size": len(data)}

    def add_layer(self, tar, codec="gzip"):
        """tar: the path of an uncompressed archive."""
        plain, coded, size = hashlib.sha256(), hashlib.sha256(), 0
        tmp = self.path + "/blobs/layer.tmp"
        with open(tar, "rb") as src, open(tmp, "wb") as raw:
            if codec == "gzip":
                out = gzip.GzipFile("", "wb", 6, raw, mtime=0)
            elif codec == "zstd":
                proc = subprocess.Popen(["zstd", "-q", "-c"], stdin=subprocess.PIPE, stdout=raw)
                out = proc.stdin
            else:
                out = raw
            while chunk := src.read(1 << 20):
                plain.update(chunk)
                out.write(chunk)
            out.close()
            if codec == "zstd" and proc.wait():
                raise OSError("zstd failed")
        with open(tmp, "rb") as f:
            while chunk := f.read(1 << 20):
                coded.update(chunk)
                size += len(chunk)
        os.rename(tmp, "%s/blobs/sha256/%s" % (self.path, coded.hexdigest()))
        self.layers.append({"mediaType": TYPES + "layer.v1.tar" + CODECS[codec],
                            "digest": "sha256:" + coded.hexdigest(), "size": size})
        self.diff_ids.append("sha256:" + plain.hexdigest())

    def finish(self, tag, config):
        config = self.put("config.v1+json", json.dumps({
            "architecture": "amd64", "os": "linux", "created": DATE, "config": config,
            "rootfs": {"type": "layers", "diff_ids": self.diff_ids},
            "history": [{"created": DATE, "created_by": "bootseer tests"} for _ in self.layers],
        }).encode())
        manifest = self.put("manifest.v1+json", json.dumps({
            "schemaVersion": 2, "mediaType": TYPES + "manifest.v1+json",
            "config": config, "layers": self.layers}).encode())
        manifest["platform"] = {"architecture": "amd64", "os": "linux"}
        manifest["annotations"] = {"org.opencontainers.image.ref.name": tag}
        with open(self.path + "/oci-layout", "w") as f:
            f.write('{"imageLayoutVersion": "1.0.0"}')
        with open(self.path + "/index.json", "w") as f:
            json.dump({"schemaVersion": 2, "mediaType": TYPES + "index.v1+json",
                       "manifests": [manifest]}, f)
        return manifest["digest"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tag", default="latest")
    parser.add_argument("--codec", choices=sorted(CODECS), default="gzip")
    parser.add_argument("--config", default="{}", help="JSON: Env, Cmd, User, WorkingDir ...")
    parser.add_argument("dir")
    parser.add_argument("layers", nargs="+")
    args = parser.parse_args()
    layout = Layout(args.dir)
    for tar in args.layers:
        layout.add_layer(tar, args.codec)
    config = {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
              "Cmd": ["/bin/sh"]}
    config.update(json.loads(args.config))
    print(layout.finish(args.tag, config))


if __name__ == "__main__":
    main()
