from tests import typecheck as typecheck  # for the import hook, which looks it up as an attribute
