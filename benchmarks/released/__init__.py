"""Results that authors released, as figures and ids, which ship with Assay.

`released.toml` names each table with source, commit, licence and SHA-256; `bundle` reads them.
"""
