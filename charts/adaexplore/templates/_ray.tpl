{{/* Ray's pods, as manifests/rayjobs.py makes them; a test holds them equal. */}}

{{/* Labels: (dict "component" c "name" n "sweep" s "attempt" a) */}}
{{- define "adaexplore.rayLabels" -}}
{{ include "adaexplore.ownLabels" (list .component .name) }}
adaexplore.dev/sweep: {{ include "adaexplore.labelValue" .sweep | quote }}
adaexplore.dev/attempt: {{ include "adaexplore.labelValue" .attempt | quote }}
{{- end -}}

{{/* spec of a RayCluster: (dict "root" $ "name" n "sweep" s "attempt" a "own" variables "sidecar" bool) */}}
{{- define "adaexplore.rayCluster" -}}
{{- $ray := .root.Values.ray -}}
rayVersion: {{ $ray.version | quote }}
{{- with $ray.authSecret }}
authOptions:
  mode: token
  secretName: {{ . }}
{{- end }}
headGroupSpec:
  rayStartParams:
    object-store-memory: {{ $ray.objectStoreBytes | int64 | quote }}
    num-cpus: "0"
  template: {{- include "adaexplore.rayTemplate" (merge (dict "component" "ray-head" "size" $ray.head) .) | nindent 4 }}
workerGroupSpecs:
  - groupName: workers
    replicas: {{ $ray.workers }}
    minReplicas: {{ $ray.workers }}
    maxReplicas: {{ $ray.workers }}
    rayStartParams:
      object-store-memory: {{ $ray.objectStoreBytes | int64 | quote }}
    template: {{- include "adaexplore.rayTemplate" (merge (dict "component" "ray-worker" "size" $ray.worker) .) | nindent 6 }}
{{- end -}}

{{- define "adaexplore.rayTemplate" -}}
{{- $values := .root.Values -}}
{{- $head := eq .component "ray-head" -}}
metadata:
  labels: {{- include "adaexplore.rayLabels" . | nindent 4 }}
spec:
  {{- include "adaexplore.rayPod" (merge (dict "token" $head "account" (ternary $values.serviceAccounts.driver $values.serviceAccounts.worker $head)) .) | nindent 2 }}
  {{- if and $head .sidecar }}
  restartPolicy: Never
  {{- end }}
  containers:
    - name: {{ .component }}
      image: {{ include "adaexplore.image" .root }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      resources: {{- include "adaexplore.resources" .size | trim | nindent 8 }}
      securityContext: {{- include "adaexplore.containerSecurity" . | nindent 8 }}
      env:
        {{- $digest := ternary (dict "ADAEXPLORE_IMAGE_DIGEST" $values.image.digest) (dict) (ne $values.image.digest "") }}
        {{- $cleanup := dict "RAY_process_group_cleanup_enabled" "true" }}
        {{- $drain := dict "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S" "10" }}
        {{- include "adaexplore.variables" (merge (dict) $cleanup .own $digest $values.ray.env $drain) | trim | nindent 8 }}
        {{- range $name, $path := dict "POD_NAME" "metadata.name" "POD_NAMESPACE" "metadata.namespace" "POD_UID" "metadata.uid" }}
        - name: {{ $name }}
          valueFrom: {fieldRef: {fieldPath: {{ $path }}}}
        {{- end }}
      {{- with $values.ray.secrets }}
      envFrom:
        {{- range . }}
        - secretRef: {name: {{ . }}}
        {{- end }}
      {{- end }}
{{- end -}}

{{/* A pod's spec but for its containers: (dict ... "account" a "token" bool) */}}
{{- define "adaexplore.rayPod" -}}
{{- $ray := .root.Values.ray -}}
serviceAccountName: {{ .account }}
automountServiceAccountToken: {{ .token }}
enableServiceLinks: false
terminationGracePeriodSeconds: 30
securityContext: {{- include "adaexplore.podSecurity" (list 1000 1000) | nindent 2 }}
{{- include "adaexplore.pullSecrets" .root.Values.image.pullSecrets }}
{{- with $ray.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $ray.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if and $ray.priorityClass (not $ray.queue) }}
priorityClassName: {{ $ray.priorityClass }}
{{- end }}
{{- end -}}

{{- define "adaexplore.raySubmitter" -}}
{{- $values := .root.Values -}}
metadata:
  labels: {{- include "adaexplore.rayLabels" (merge (dict "component" "ray-submitter") .) | nindent 4 }}
spec:
  {{- include "adaexplore.rayPod" (merge (dict "token" false "account" $values.serviceAccounts.worker) .) | nindent 2 }}
  restartPolicy: Never
  containers:
    - name: ray-job-submitter
      image: {{ include "adaexplore.image" .root }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      resources:
        requests: {cpu: 500m, memory: 512Mi}
        limits: {cpu: 500m, memory: 512Mi}
      securityContext: {{- include "adaexplore.containerSecurity" . | nindent 8 }}
{{- end -}}
