import type { ApiReferenceConfiguration } from '@scalar/api-reference'

/** Samples are in curl, JavaScript (`fetch`) and Python (`requests`); these are what the reference could do beside them. */
export const otherLanguages: NonNullable<ApiReferenceConfiguration['hiddenClients']> = {
  c: true,
  clojure: true,
  csharp: true,
  dart: true,
  fsharp: true,
  go: true,
  http: true,
  java: true,
  js: ['axios', 'jquery', 'ofetch', 'xhr'],
  julia: true,
  kotlin: true,
  node: true,
  objc: true,
  ocaml: true,
  php: true,
  powershell: true,
  python: ['python3', 'httpx_sync', 'httpx_async', 'aiohttp'],
  r: true,
  ruby: true,
  rust: true,
  shell: ['httpie', 'wget'],
  swift: true,
}
