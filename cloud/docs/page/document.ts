import type { DescribedOperation, Description } from '../description.ts'

export type { Description }

/** One page: a title, and Markdown below it. */
export interface Guide {
  /** Its readers: callers of the API, or operators. */
  group: 'Guides' | 'Operating'
  title: string
  text: string
}

/** Values of the reader for trying calls. */
export interface Visitor {
  /** The key of the demo's owner; undefined elsewhere. */
  apiKey: string | undefined
  /** The token of a guest of the demo; undefined elsewhere. */
  token: string | undefined
  userId: number | undefined
  hubId: number | undefined
  productId: number | undefined
}

/**
 * The description in the form for the page. The guides come first, as groups without endpoints, so that the list and
 * the search contain them. Each endpoint occurs once. Known ids of the reader are filled in.
 */
export function documentOf(
  description: Description,
  guides: readonly Guide[],
  { baseUrl, ...visitor }: Visitor & { baseUrl: string },
): Record<string, unknown> {
  const { paths, tags } = description
  const { title, version, description: words } = description.info
  const subjects = new Set(groupsOf(paths).flatMap((group) => group.tags))
  const shown = Object.entries(paths).flatMap(([path, item]) => {
    const kept = Object.entries(item)
      .filter(([, operation]) => operation['x-same-as'] === undefined)
      .map(([method, operation]) => [method, filledIn(operation, visitor)] as const)
    return kept.length > 0 ? [[path, Object.fromEntries(kept)] as const] : []
  })
  return {
    ...description,
    info: { title, version, description: [...whereToBegin(guides), words].join('\n\n') },
    servers: [{ url: baseUrl }],
    tags: [
      ...guides.map(({ title, text }) => ({
        name: nameOf(title),
        'x-displayName': title,
        description: text,
      })),
      ...tags.filter(({ name }) => subjects.has(name)),
    ],
    'x-tagGroups': [
      ...(['Guides', 'Operating'] as const).flatMap((name) => {
        const own = guides.filter(({ group }) => group === name)
        return own.length > 0 ? [{ name, tags: own.map(({ title }) => nameOf(title)) }] : []
      }),
      ...groupsOf(paths),
    ],
    paths: Object.fromEntries(shown),
  }
}

/** The subjects of each audience. */
function groupsOf(paths: Description['paths']): { name: string; tags: string[] }[] {
  const groups = new Map<string, Set<string>>()
  for (const { tags } of Object.values(paths).flatMap((item) => Object.values(item))) {
    const [audience = '', subject = audience] = tags
    groups.set(audience, (groups.get(audience) ?? new Set()).add(subject))
  }
  return [...groups].map(([name, subjects]) => ({ name, tags: [...subjects] }))
}

/** A prefix, because some guides have the same name as a group of endpoints. */
const nameOf = (title: string): string => `guide ${title}`

/** Links to every page: callers start with a sale, operators with the installation. */
function whereToBegin(guides: readonly Guide[]): string[] {
  const linkTo = ({ title }: Guide): string =>
    `[${title}](#tag/${nameOf(title)
      .toLowerCase()
      .replaceAll(/[^a-z ]/g, '')
      .replaceAll(' ', '-')})`
  const [first, ...others] = guides.filter(({ group }) => group === 'Guides').map(linkTo)
  const operating = guides.filter(({ group }) => group === 'Operating').map(linkTo)
  return [
    ...(first === undefined ? [] : [`Begin with **${first}**. Then: ${others.join(' · ')}.`]),
    ...(operating.length > 0 ? [`For operators: ${operating.join(' · ')}.`] : []),
  ]
}

/** An operation with the reader's own ids in its examples. */
function filledIn(operation: DescribedOperation, { userId, hubId, productId }: Omit<Visitor, 'token'>) {
  const known: Record<string, number | undefined> = { user_id: userId, hub_id: hubId, hub: hubId }
  const parameters = operation.parameters?.map((parameter) => {
    const value = known[parameter.name]
    return value === undefined ? parameter : { ...parameter, example: value }
  })
  const json = operation.requestBody?.content['application/json']
  const example = json?.example
  const knownInBody: Record<string, number | undefined> = { ...known, product_id: productId }
  const body =
    typeof example === 'object' && example !== null
      ? Object.fromEntries(
          Object.entries(example).map(([name, value]) => [name, knownInBody[name] ?? (value as unknown)]),
        )
      : undefined
  return {
    ...operation,
    // Only the subject, so that the list at the side contains it once.
    tags: operation.tags.slice(-1),
    ...(parameters && { parameters }),
    ...(body && {
      requestBody: {
        ...operation.requestBody,
        content: { ...operation.requestBody!.content, 'application/json': { ...json, example: body } },
      },
    }),
  }
}
