import { defineTable, id, instant, int, oneOf, text } from '../table.ts'

/** Stored files, and the objects that use them. */
export const mediaTables = {
  /** A row exists before its file, and until after the file's removal. */
  media: defineTable({
    key: text.primaryKey.fixed,
    /** pending: being stored. kept: an object refers to it. removed: being deleted. */
    state: oneOf(['pending', 'kept', 'removed']),
    mime_type: text.fixed,
    /** Bytes; 0 until it is stored. */
    size: int.check('>= 0'),
    /** Hexadecimal; empty until it is stored. */
    sha256: text,
    created_at: instant.fixed,
  }).index('media_not_kept', ['state', 'created_at'], "state <> 'kept'"),
  /** The last id of an object with files. */
  media_folders: defineTable({ folder: text.primaryKey.fixed, last: int }),
  /** Releases of the hub's service, one row for each processor. */
  releases: defineTable({
    file: text.primaryKey.fixed,
    version: text.fixed,
    processor: text.fixed,
    key: text.references('media', { column: 'key' }).fixed,
    added_at: instant.fixed,
  }),
  /** Signed metadata of the releases (TUF), by file name. */
  release_metadata: defineTable({ name: text.primaryKey.fixed, body: text }),
  maintenance_reports: defineTable({
    id: int.primaryKey.fixed,
    hub_id: int.references('hubs').fixed,
    /** The hub's owner at submission. */
    owner_id: int.references('owners').fixed,
    name: text.fixed,
    service_type: text.fixed,
    hub_tested: text.nullable.fixed,
    service_start_time: instant.fixed,
    service_end_time: instant.nullable.fixed,
    description: text.nullable.fixed,
    /** JSON: names. */
    components_serviced: text.fixed,
    submitted_by: text.fixed,
    /** The author's submission time. */
    submitted_at: instant.fixed,
    created_at: instant.fixed,
    /** For a report that was made at the hub: the hub's own id, which prevents duplicates. */
    hub_report_id: text.nullable.fixed,
  })
    .index('maintenance_reports_by_hub', ['hub_id', 'owner_id', 'id'])
    .unique('hub_id', 'hub_report_id'),
  maintenance_media: defineTable({
    report_id: int.references('maintenance_reports').fixed,
    /** From 0, in the order of the form. */
    position: int.fixed,
    key: text.references('media', { column: 'key' }).fixed,
    fieldname: text.fixed,
    original_name: text.fixed,
  }).primaryKey('report_id', 'position'),
  banners: defineTable({
    id,
    hub_id: int.references('hubs').fixed,
    name: text.fixed,
    order_by: int.fixed,
    image_key: text.references('media', { column: 'key' }).fixed,
    created_at: instant.fixed,
  }).index('banners_by_hub', ['hub_id', 'order_by', 'id']),
}
