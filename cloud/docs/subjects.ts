import type { Description } from './description.ts'

/** The endpoints of one subject of the API: `Orders`. */
export interface Subject {
  name: string
  slug: string
  /** `Owner API`, `Customer API`, `Service`. */
  audience: string
  operations: {
    method: string
    path: string
    summary: string
    /** Description, parameters and fields in lower case, for the search. */
    words: string
  }[]
}

export const slugOf = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9 -]/g, '')
    .trim()
    .replaceAll(' ', '-')

interface Described {
  tags: string[]
  summary: string
  description?: string
  'x-same-as'?: string
}

/** The endpoints of a description, each once, by subject. */
function* operationsOf({ paths }: Description) {
  for (const [path, item] of Object.entries(paths))
    for (const [method, operation] of Object.entries(item as unknown as Record<string, Described>)) {
      const [audience = '', subject = audience] = operation.tags
      if (operation['x-same-as'] === undefined) yield { path, method, operation, audience, subject }
    }
}

export function subjectsOf(description: Description): Subject[] {
  const subjects = new Map<string, Subject>()
  for (const { path, method, operation, audience, subject } of operationsOf(description)) {
    const one = subjects.get(subject) ?? { name: subject, slug: slugOf(subject), audience, operations: [] }
    subjects.set(subject, one)
    const words = [operation.description ?? '', ...fieldsOf(operation, description)].join(' ').toLowerCase()
    one.operations.push({ method, path, summary: operation.summary, words })
  }
  return [...subjects.values()]
}

/** The description of one subject: its endpoints, and the components that they refer to. */
export function cutTo(description: Description, name: string): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const { path, method, operation, subject } of operationsOf(description))
    if (subject === name) paths[path] = { ...paths[path], [method]: operation }
  const all = (description['components'] ?? {}) as Record<string, Record<string, unknown>>
  const components: Record<string, Record<string, unknown>> = {
    securitySchemes: all['securitySchemes'] ?? {},
  }
  for (const [kind, part] of referred(paths, all))
    components[kind] = { ...components[kind], [part]: all[kind]![part] }
  const { version } = description.info
  const words = 'Rules that hold for all calls are on the [start page](./).'
  return {
    ...description,
    info: { ...description.info, title: name, version, description: words },
    tags: description.tags.filter((tag) => tag.name === name),
    paths,
    components,
  }
}

/** The components to which a value refers, and those to which these refer. */
function referred(
  value: unknown,
  all: Readonly<Record<string, Record<string, unknown>>>,
): [string, string][] {
  const found = new Map<string, [string, string]>()
  const texts = [JSON.stringify(value)]
  for (const text of texts)
    for (const [, kind, part] of text.matchAll(/"#\/components\/([^/"]+)\/([^/"]+)"/g)) {
      const key = `${kind} ${part}`
      if (found.has(key) || all[kind!]?.[part!] === undefined) continue
      found.set(key, [kind!, part!])
      texts.push(JSON.stringify(all[kind!]![part!]))
    }
  return [...found.values()]
}

/** Names of parameters and of fields that a caller sends or reads. */
function fieldsOf(operation: unknown, description: Description): string[] {
  const all = (description['components'] ?? {}) as Record<string, Record<string, unknown>>
  const parts = referred(operation, all).filter(([kind]) => kind === 'schemas')
  const texts = [operation, ...parts.map(([kind, part]) => all[kind]![part])].map((one) =>
    JSON.stringify(one),
  )
  const names = texts.flatMap((text) => [
    ...[...text.matchAll(/"([a-z][a-z0-9_]*)":\{"(?:type|description|anyOf|\$ref|enum|const|allOf)"/g)].map(
      ([, name]) => name!,
    ),
    ...[...text.matchAll(/"name":"([^"]+)","in"/g)].map(([, name]) => name!),
  ])
  return [...new Set(names)]
}
