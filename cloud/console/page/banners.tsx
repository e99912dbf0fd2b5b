import type { JSX } from 'preact'
import { useData } from './data.ts'
import { ActForm, Card, HeldAct, Input, Loaded, Nothing } from './parts.tsx'
import { ask, can, imageAt } from './session.ts'

/** Largest picture that the service accepts, in MiB. A larger one would be refused after its upload. */
const MOST_MIB = 5

/** The banners of a hub, in the order in which customers see them. */
export function Banners({ hub }: { hub: number }): JSX.Element {
  const query = { hub_id: hub }
  const found = useData(() => ask('GET /owners/owner/banners', { query }), [hub])
  const mayWrite = can('promotions:write', hub)
  return (
    <Card title="Banners" class="mt-3" name="banners">
      <Loaded of={found}>
        {(banners) => (
          <>
            {banners.length === 0 && <Nothing>No banner yet.</Nothing>}
            <ul class="grid gap-3 sm:grid-cols-2 xl:grid-cols-3">
              {banners.map(({ id, name, image_url, order_by }) => (
                <li key={id} class="min-w-0" data-banner={id}>
                  <img
                    src={imageAt(image_url)}
                    alt={`Banner ${name}`}
                    loading="lazy"
                    class="w-full h-32 object-contain rounded bg-base-200"
                  />
                  <div class="flex gap-2 items-start mt-1">
                    <p class="grow min-w-0 break-words">
                      {name} <span class="block text-sm quiet">position {order_by}</span>
                    </p>
                    {mayWrite && (
                      <HeldAct
                        does={`Remove banner “${name}”`}
                        label={`Remove banner ${name}`}
                        run={() =>
                          ask('DELETE /owners/owner/banners/{banner_id}', {
                            params: { banner_id: id },
                            query,
                          })
                        }
                      >
                        Remove
                      </HeldAct>
                    )}
                  </div>
                </li>
              ))}
            </ul>
            {mayWrite && (
              <NewBanner hub={hub} position={1 + Math.max(0, ...banners.map((one) => one.order_by))} />
            )}
          </>
        )}
      </Loaded>
    </Card>
  )
}

/** Adds a banner, by default after the others. */
function NewBanner({ hub, position }: { hub: number; position: number }): JSX.Element {
  async function add(_texts: unknown, form: FormData): Promise<void> {
    const file = form.get('file')
    if (file instanceof File && file.size > MOST_MIB * 1024 * 1024)
      throw new Error(`The picture has more than ${MOST_MIB} MiB.`)
    await ask('POST /owners/owner/banners', { query: { hub_id: hub }, form })
  }
  return (
    <ActForm
      class="grid gap-2 sm:grid-cols-2 lg:grid-cols-4 items-end mt-4"
      does={() => 'Add the banner'}
      run={add}
    >
      <Input label="Name of the banner" name="name" required maxLength={200} />
      <Input
        label="Position, lowest first"
        name="order_by"
        type="number"
        min={0}
        max={1_000_000}
        defaultValue={String(position)}
        required
      />
      <Input
        label={`Picture, at most ${MOST_MIB} MiB`}
        name="file"
        type="file"
        accept="image/png,image/jpeg,image/webp,image/gif"
        class="file-input w-full"
        required
      />
      <button class="btn btn-primary justify-self-start">Add banner</button>
    </ActForm>
  )
}
