import { ApiError } from '../../platform/api-error.ts'
import type { CloudContext } from '../../platform/context.ts'
import { answerFile } from '../../platform/http/file-handlers.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import type { Media } from '../../platform/media/media.ts'
import { readMetadata } from './releases.ts'

/** Serves the signed list of releases and their files to hubs. Hubs verify the signatures, so the routes need no credential. */
export function releaseHandlers(
  { db }: CloudContext,
  media: Media,
): Handlers<'root.releases.metadata' | 'root.releases.file'> {
  return {
    async 'root.releases.metadata'({ params }) {
      const body = await readMetadata(db.kysely, params.file)
      if (body === undefined) throw new ApiError('not_found', 'The list of releases has no such file.')
      return JSON.parse(body) as Record<string, unknown>
    },
    async 'root.releases.file'(input) {
      const { file } = input.params
      const release = await db.kysely
        .selectFrom('releases')
        .select('key')
        .where('file', '=', file)
        .executeTakeFirst()
      const stored = release && (await media.find(release.key))
      if (!stored) throw new ApiError('not_found', 'There is no such release.')
      return answerFile(input, stored, media, { 'Cache-Control': 'public, max-age=86400, immutable' })
    },
  }
}
