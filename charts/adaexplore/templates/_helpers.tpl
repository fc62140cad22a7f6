{{/* Names, labels, images and what all pods share. See manifests/common.py, which makes the same. */}}

{{- define "adaexplore.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "adaexplore.fullname" -}}
{{- $name := include "adaexplore.name" . -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- /* The longest suffix, a hook's, has 15 characters. */ -}}
{{- default $full .Values.fullnameOverride | trunc 47 | trimSuffix "-" -}}
{{- end -}}

{{/* Selectors never change: (list $ "component") */}}
{{- define "adaexplore.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "adaexplore.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "adaexplore.labels" -}}
{{- $root := index . 0 -}}
{{ include "adaexplore.selector" . }}
app.kubernetes.io/part-of: adaexplore
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Labels of a pod: without what changes with the chart. */}}
{{- define "adaexplore.podLabels" -}}
{{ include "adaexplore.selector" . }}
app.kubernetes.io/part-of: adaexplore
{{- end -}}

{{/* Labels of what the backend makes as well: (list component instance) */}}
{{- define "adaexplore.ownLabels" -}}
app.kubernetes.io/name: adaexplore
app.kubernetes.io/instance: {{ index . 1 | quote }}
app.kubernetes.io/component: {{ index . 0 }}
app.kubernetes.io/part-of: adaexplore
app.kubernetes.io/managed-by: adaexplore
{{- end -}}

{{/* Any text as a label's value, as common.label_value. */}}
{{- define "adaexplore.labelValue" -}}
{{- if and (le (len .) 63) (regexMatch "^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$" .) -}}
{{- . -}}
{{- else -}}
{{- $slug := regexReplaceAll "[^A-Za-z0-9._-]+" . "-" | trunc 54 | trimAll "-._" -}}
{{- ternary (printf "%s-%s" $slug (sha256sum . | trunc 8)) (sha256sum . | trunc 8) (ne $slug "") -}}
{{- end -}}
{{- end -}}

{{/* By digest where there is one; a tag and a digest together are refused by the schema. */}}
{{- define "adaexplore.image" -}}
{{- $image := .Values.image -}}
{{- $repository := printf "%s%s" (ternary (printf "%s/" $image.registry) "" (ne $image.registry "")) $image.repository -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default .Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "adaexplore.engineImage" -}}
{{- $image := .Values.serving.image -}}
{{- $registry := .Values.image.registry -}}
{{- $repository := printf "%s%s" (ternary (printf "%s/" $registry) "" (ne $registry "")) $image.repository -}}
{{- ternary (printf "%s@%s" $repository $image.digest) (printf "%s:%s" $repository $image.tag) (ne $image.digest "") -}}
{{- end -}}

{{/* Names of Secrets as the API wants them: (list names) */}}
{{- define "adaexplore.pullSecrets" -}}
{{- with . }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* A numeric user that is not root: (list user group) */}}
{{- define "adaexplore.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ index . 0 }}
runAsGroup: {{ index . 1 }}
fsGroup: {{ index . 1 | default (index . 0) }}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "adaexplore.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
{{- end -}}

{{/* Requests and limits from a size {cpu, memory, ephemeral}. */}}
{{- define "adaexplore.resources" -}}
{{- range list "requests" "limits" }}
{{ . }}:
  cpu: {{ $.cpu | quote }}
  memory: {{ $.memory }}
  ephemeral-storage: {{ $.ephemeral }}
{{- end }}
{{- end -}}

{{/* Entries of env, in the order of names. */}}
{{- define "adaexplore.variables" -}}
{{- range $name := keys . | sortAlpha }}
- name: {{ $name }}
  value: {{ get $ $name | toString | quote }}
{{- end }}
{{- end -}}

{{/* What our own small pods share, but for names: (list $ account) */}}
{{- define "adaexplore.pod" -}}
{{- $root := index . 0 -}}
serviceAccountName: {{ index . 1 }}
enableServiceLinks: false
securityContext: {{- include "adaexplore.podSecurity" (list 1000 1000) | nindent 2 }}
{{- include "adaexplore.pullSecrets" $root.Values.image.pullSecrets }}
{{- end -}}

{{/* The claim with weights; empty where there is none. */}}
{{- define "adaexplore.claim" -}}
{{- $cache := .Values.models.cache -}}
{{- $cache.existingClaim | default (ternary $cache.name "" $cache.enabled) -}}
{{- end -}}

{{/* Mebibytes of a size in Mi or Gi. */}}
{{- define "adaexplore.mebibytes" -}}
{{- $many := regexFind "^[0-9]+" . | int -}}
{{- ternary (mul $many 1024) $many (hasSuffix "Gi" .) -}}
{{- end -}}
