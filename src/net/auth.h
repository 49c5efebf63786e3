/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A node's registry credentials, asked anew at each call so that changed files are
 * noticed; nothing is kept or written. In this order: docker's config.json
 * ($DOCKER_CONFIG, else ~/.docker; credHelpers, credsStore, auths), containers'
 * auth.json ($REGISTRY_AUTH_FILE, else ${XDG_RUNTIME_DIR}/containers), each
 * *.json of a directory of dockerconfigjson files, kubelet credential-provider
 * plug-ins (exec protocol credentialprovider.kubelet.k8s.io/v1).
 */
#ifndef BS_NET_AUTH_H
#define BS_NET_AUTH_H

struct bs_error;

struct bs_auth_options {
	const char *docker_config;    /* config.json or its directory; NULL: as above */
	const char *dockerconfig_dir; /* NULL: none */
	const char *provider_config;  /* kubelet's CredentialProviderConfig as JSON; NULL: none */
	const char *provider_bin_dir;
};

/*
 * Credentials for an image of host (repository "HOST/NAME" decides among auths
 * entries with a path). Both results malloc'ed; user "" means that the secret is an
 * identity token. -ENOENT: none, go anonymous. Runs helpers, each at most 30 s.
 */
int bs_auth_find(const struct bs_auth_options *o, const char *host, const char *repository,
		 char **ret_user, char **ret_secret, struct bs_error *err);

#endif
