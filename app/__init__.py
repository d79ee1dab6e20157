"""The Streamlit app, its HTTP routes, the command line and job launching.

Internal: programs import `inf_studio` alone.
"""
