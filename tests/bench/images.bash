# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# images.bash: large sample images for the benchmarks, made and kept as those of
# tests/lib/images.bash are, which is to be sourced first.

# What is in layer $1 of the image: pip's names; all that they need is here too, but
# triton, cusolver and cudnn's precompiled engines, which nothing of a start needs.
bench_torch_wheels() {
	case $1 in
	0) echo nvidia-cublas-cu12==12.6.4.1 nvidia-cuda-cupti-cu12==12.6.80 \
		nvidia-cuda-nvrtc-cu12==12.6.77 nvidia-cuda-runtime-cu12==12.6.77 \
		nvidia-cudnn-cu12==9.5.1.17 nvidia-cufft-cu12==11.3.0.4 nvidia-cufile-cu12==1.11.1.6 \
		nvidia-curand-cu12==10.3.7.77 nvidia-cusparse-cu12==12.5.4.2 \
		nvidia-cusparselt-cu12==0.6.3 nvidia-nccl-cu12==2.26.2 nvidia-nvjitlink-cu12==12.6.85 \
		nvidia-nvtx-cu12==12.6.77 ;;
	1) echo torch==2.7.1 ;;
	2) echo accelerate==1.15.0 aiohappyeyeballs==2.7.1 aiohttp==3.14.5 aiosignal==1.4.0 \
		anyio==4.16.0 attrs==26.1.0 certifi==2026.10.19.post1 charset-normalizer==3.5.3 \
		cloudpickle==3.1.3 datasets==5.0.1 dill==0.4.1 filelock==4.3.1 frozenlist==1.8.0 \
		fsspec==2026.6.0 h11==0.16.0 hf-xet==1.8.0 httpcore==1.0.9 httpx==0.28.1 \
		huggingface-hub==0.36.2 idna==3.20 jinja2==3.1.6 joblib==1.6.0 markupsafe==3.0.4 \
		mpmath==1.3.0 multidict==7.2.1 multiprocess==0.70.19 narwhals==2.29.0 networkx==3.6.1 \
		numpy==2.2.6 packaging==26.4 pandas==2.3.3 propcache==0.5.4 psutil==7.2.2 \
		pyarrow==26.0.1 python-dateutil==4.0.0 pytz==2026.6 pyyaml==6.0.4 regex==2026.11.19 \
		requests==2.34.2 safetensors==0.8.0 scikit-learn==1.9.1 scipy==1.17.1 setuptools==84.2.1 \
		sympy==1.14.0 threadpoolctl==3.8.0 tokenizers==0.21.4 tqdm==4.70.1 transformers==4.55.4 \
		typing-extensions==4.16.0 tzdata==2026.6 urllib3==2.8.0 xxhash==4.1.0 yarl==1.25.1 ;;
	esac
}

# image_torch: the Python image, a layer of CUDA's libraries, one of torch, one of
# transformers and what it needs: 4.8 GB in 43,000 files. 15 minutes to make the first time, of
# 3 GB from PyPI; 12 GB of disk while it is made, 3 afterwards.
image_torch() {
	# shellcheck disable=SC2154 # images_lib: of tests/lib/images.bash
	cache_entry "torch-$(images_key image_make_python image_make_torch bench_torch_layer images_tar \
		bench_torch_wheels "$images_lib/ocilayout.py")" image_make_torch
}

# One layer: the wheels, unpacked and byte-compiled as pip does it, in DIR.tar. Dates are fixed
# before they are compiled, since what is compiled names the date of what it was made from.
bench_torch_layer() {
	local root=$1 site=$1/usr/local/lib/python3.11/dist-packages
	shift
	/usr/bin/python3 -m pip install -q --no-cache-dir --no-compile --no-deps --only-binary=:all: \
		--python-version 3.11 --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 \
		--platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 --target "$site" "$@" || return
	rm -f "$site"/nvidia/cudnn/lib/libcudnn_engines_precompiled*
	find "$root" -exec touch -hd '2024-01-01 00:00:00 UTC' {} +
	# some wheels carry sources that no Python can compile
	/usr/bin/python3 -m compileall -q -j2 -s "$root" -p / "$site" >/dev/null
	find "$root" -exec touch -hd '2024-01-01 00:00:00 UTC' {} +
	images_tar "$root" >"$root.tar" && rm -rf --one-file-system "$root"
}

image_make_torch() {
	local out=$1 base n tars=() words
	base=$(image_python) || return
	for n in 0 1; do
		gzip -dc "$base/blobs/sha256/$(images_layer_digest "$base" $n)" >"$out/base$n.tar" || return
		tars+=("$out/base$n.tar")
	done
	for n in 0 1 2; do
		read -ra words < <(bench_torch_wheels $n)
		bench_torch_layer "$out/wheels$n" "${words[@]}" || return
		tars+=("$out/wheels$n.tar")
	done
	"$images_lib/ocilayout.py" --config '{"Cmd":["python3"],"WorkingDir":"/root"}' "$out" "${tars[@]}" &&
		rm -f "${tars[@]}"
}

# image_node: Debian with Node.js, the TypeScript compiler and lodash, one layer.
image_node() {
	cache_entry "node-$(images_key image_make_node images_tar "$images_lib/ocilayout.py")" image_make_node
}

image_make_node() {
	local out=$1 root=$1/root
	debootstrap --variant=minbase --include=nodejs,node-typescript,node-lodash bookworm "$root" || return
	rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/var/log/*
	images_tar "$root" >"$out/1.tar" &&
		"$images_lib/ocilayout.py" --config '{"Cmd":["node"],"WorkingDir":"/root"}' "$out" "$out/1.tar" &&
		rm -rf --one-file-system "$root" "$out/1.tar"
}
